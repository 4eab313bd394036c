// SPDX-License-Identifier: MIT
#include "schedules/python-literal.h"

#include "sim/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Nesting of a plan file is 3. The limit keeps a file of a million brackets from exhausting the C stack.
#define MAX_DEPTH 32

typedef struct {
    const char *path;
    const char *p, *end;
    guint line;
    guint depth;
    GPtrArray *comments;
} Parser;

static void value_free(gpointer data)
{
    NjPythonValue *value = data;
    if (value == NULL)
        return;
    g_free(value->text);
    if (value->items != NULL)
        g_ptr_array_unref(value->items);
    g_free(value);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjPythonValue, value_free)

static void comment_free(gpointer data)
{
    NjPythonComment *comment = data;
    g_free(comment->text);
    g_free(comment);
}

static void skip_space_and_comments(Parser *parser)
{
    while (parser->p < parser->end) {
        if (*parser->p == '#') {
            const gsize length = strcspn(parser->p, "\n");
            NjPythonComment *comment = g_new0(NjPythonComment, 1);
            comment->line = parser->line;
            comment->text = g_strstrip(g_strndup(parser->p + 1, length - 1));
            g_ptr_array_add(parser->comments, comment);
            parser->p += length;
        } else if (g_ascii_isspace(*parser->p)) {
            parser->line += *parser->p == '\n';
            parser->p++;
        } else {
            break;
        }
    }
}

// What stands at the cursor, for messages: a run of word characters, or one character.
static char *show_next(const Parser *parser)
{
    const char *p = parser->p;
    if (p >= parser->end)
        return g_strdup("the end of the file");
    while (p < parser->end && p - parser->p < 40 && (g_ascii_isalnum(*p) || *p == '_' || *p == '.'))
        p++;
    if (p == parser->p && (guchar)*p >= 0x80)
        return g_strdup_printf("byte 0x%02x", (guchar)*p);
    g_autofree char *word = g_strndup(parser->p, (gsize)MAX(1, p - parser->p));
    return g_ascii_iscntrl(*word) ? g_strdup_printf("byte 0x%02x", (guchar)*word)
                                  : g_strdup_printf("'%s'", word);
}

static void set_expected(const Parser *parser, const char *expected, GError **error)
{
    g_autofree char *found = show_next(parser);
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: %s where %s is expected", parser->path, parser->line,
                found, expected);
}

static gboolean parse_string(Parser *parser, NjPythonValue *value, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const char quote = *parser->p++;
    for (; parser->p < parser->end && *parser->p != '\n' && *parser->p != quote; parser->p++) {
        if (*parser->p == '\\') {
            parser->p++;
            if (parser->p >= parser->end || strchr("\\'\"", *parser->p) == NULL) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                            "%s:%u: a backslash in a string: only \\\\, \\' and \\\" are read", parser->path,
                            parser->line);
                return FALSE;
            }
        }
        g_string_append_c(text, *parser->p);
    }
    if (parser->p >= parser->end || *parser->p != quote) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:%u: a string is not closed: %c is needed before the line ends", parser->path,
                    parser->line, quote);
        return FALSE;
    }
    parser->p++;
    value->type = NJ_PYTHON_STRING;
    value->text = g_string_free(g_steal_pointer(&text), FALSE);
    return TRUE;
}

static gboolean parse_number(Parser *parser, NjPythonValue *value, GError **error)
{
    const char *p = parser->p + (*parser->p == '-' || *parser->p == '+');
    const gsize digits = strspn(p, "0123456789");
    char *integer_end, *real_end;
    errno = 0;
    value->integer = g_ascii_strtoll(parser->p, &integer_end, 10);
    const gboolean overflow = errno == ERANGE;
    // g_ascii_strtod() would also take hexadecimal, "inf" and "nan": the next characters must be digits.
    value->real = g_ascii_strtod(parser->p, &real_end);
    const char next = *real_end;
    if ((digits == 0 && !(*p == '.' && g_ascii_isdigit(p[1]))) || g_ascii_isalnum(next) || next == '_' ||
        next == '.' || (digits == 1 && *p == '0' && g_ascii_isalpha(p[1]) && p[1] != 'e' && p[1] != 'E')) {
        set_expected(parser, "a number", error);
        return FALSE;
    }
    if (real_end == integer_end) {
        value->type = NJ_PYTHON_INTEGER;
    } else {
        value->type = NJ_PYTHON_FLOAT;
    }
    if (value->type == NJ_PYTHON_INTEGER ? overflow : !isfinite(value->real)) {
        g_autofree char *text = g_strndup(parser->p, (gsize)MIN(40, real_end - parser->p));
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: the number %s is too large", parser->path,
                    parser->line, text);
        return FALSE;
    }
    parser->p = real_end;
    return TRUE;
}

static NjPythonValue *parse_value(Parser *parser, GError **error);

// A list, a tuple, or a value in parentheses, which Python takes for the value itself.
static gboolean parse_sequence(Parser *parser, NjPythonValue *value, GError **error)
{
    const gboolean list = *parser->p == '[';
    const char close = list ? ']' : ')';
    gboolean comma = FALSE;

    if (++parser->depth > MAX_DEPTH) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s:%u: nested deeper than %d", parser->path,
                    parser->line, MAX_DEPTH);
        return FALSE;
    }
    value->type = list ? NJ_PYTHON_LIST : NJ_PYTHON_TUPLE;
    value->items = g_ptr_array_new_with_free_func(value_free);
    parser->p++;
    for (;;) {
        skip_space_and_comments(parser);
        if (parser->p < parser->end && *parser->p == close)
            break;
        if (value->items->len > 0 && !comma) {
            g_autofree char *expected =
                g_strdup_printf("',' or '%c' (opened at line %u)", close, value->line);
            set_expected(parser, expected, error);
            return FALSE;
        }
        NjPythonValue *item = parse_value(parser, error);
        if (item == NULL)
            return FALSE;
        g_ptr_array_add(value->items, item);
        skip_space_and_comments(parser);
        comma = parser->p < parser->end && *parser->p == ',';
        parser->p += comma;
    }
    parser->p++;
    parser->depth--;
    if (!list && value->items->len == 1 && !comma) {
        NjPythonValue *only = g_ptr_array_steal_index(value->items, 0);
        g_ptr_array_unref(value->items);
        *value = *only;
        g_free(only);
    }
    return TRUE;
}

static NjPythonValue *parse_value(Parser *parser, GError **error)
{
    g_autoptr(NjPythonValue) value = g_new0(NjPythonValue, 1);
    gboolean ok;

    skip_space_and_comments(parser);
    value->line = parser->line;
    const char c = parser->p < parser->end ? *parser->p : '\0';
    if (c == '[' || c == '(') {
        ok = parse_sequence(parser, value, error);
    } else if (c == '\'' || c == '"') {
        ok = parse_string(parser, value, error);
    } else if (g_ascii_isdigit(c) || c == '-' || c == '+' || c == '.') {
        ok = parse_number(parser, value, error);
    } else if (strncmp(parser->p, "None", 4) == 0 && !g_ascii_isalnum(parser->p[4]) && parser->p[4] != '_') {
        parser->p += 4;
        ok = TRUE;
    } else {
        set_expected(parser, "a list, tuple, string, number or None", error);
        ok = FALSE;
    }
    return ok ? g_steal_pointer(&value) : NULL;
}

NjPythonFile *nj_python_parse(const char *path, const char *text, gsize length, GError **error)
{
    g_autoptr(NjPythonFile) file = g_new0(NjPythonFile, 1);
    file->comments = g_ptr_array_new_with_free_func(comment_free);
    Parser parser = {path, text, text + length, 1, 0, file->comments};

    if (g_str_has_prefix(text, "\xef\xbb\xbf"))
        parser.p += 3;
    file->value = parse_value(&parser, error);
    if (file->value == NULL)
        return NULL;
    skip_space_and_comments(&parser);
    if (parser.p < parser.end) {
        set_expected(&parser, "a comment or the end of the file", error);
        return NULL;
    }
    return g_steal_pointer(&file);
}

void nj_python_file_free(NjPythonFile *file)
{
    if (file == NULL)
        return;
    value_free(file->value);
    g_ptr_array_unref(file->comments);
    g_free(file);
}

const char *nj_python_type_name(NjPythonType type)
{
    switch (type) {
    case NJ_PYTHON_NONE:
        return "None";
    case NJ_PYTHON_INTEGER:
        return "an integer";
    case NJ_PYTHON_FLOAT:
        return "a float";
    case NJ_PYTHON_STRING:
        return "a string";
    case NJ_PYTHON_LIST:
        return "a list";
    case NJ_PYTHON_TUPLE:
        return "a tuple";
    }
    g_assert_not_reached();
}

static void show(const NjPythonValue *value, GString *out)
{
    switch (value->type) {
    case NJ_PYTHON_NONE:
        g_string_append(out, "None");
        return;
    case NJ_PYTHON_INTEGER:
        g_string_append_printf(out, "%" G_GINT64_FORMAT, value->integer);
        return;
    case NJ_PYTHON_FLOAT:
        nj_python_append_float(value->real, out);
        return;
    case NJ_PYTHON_STRING:
        g_string_append_printf(out, "'%s'", value->text);
        return;
    case NJ_PYTHON_LIST:
    case NJ_PYTHON_TUPLE:
        g_string_append_c(out, value->type == NJ_PYTHON_LIST ? '[' : '(');
        for (guint i = 0; i < value->items->len && out->len < 60; i++) {
            if (i > 0)
                g_string_append(out, ", ");
            show(value->items->pdata[i], out);
        }
        if (value->type == NJ_PYTHON_TUPLE && value->items->len == 1)
            g_string_append_c(out, ',');
        g_string_append_c(out, value->type == NJ_PYTHON_LIST ? ']' : ')');
        return;
    }
    g_assert_not_reached();
}

char *nj_python_show(const NjPythonValue *value)
{
    g_autoptr(GString) out = g_string_new(NULL);
    show(value, out);
    if (out->len > 40) {
        g_string_truncate(out, 37);
        g_string_append(out, "...");
    }
    return g_utf8_make_valid(out->str, (gssize)out->len);
}

void nj_python_append_float(double value, GString *out)
{
    char text[32];
    g_assert(isfinite(value));
    // Fewest digits that read back to the same number; 17 always do.
    for (int digits = 0; digits < 17; digits++) {
        char format[8];
        g_snprintf(format, sizeof format, "%%.%de", digits);
        g_ascii_formatd(text, sizeof text, format, value);
        if (g_ascii_strtod(text, NULL) == value)
            break;
    }
    char *e = strchr(text, 'e');
    const int exponent = atoi(e + 1);
    if (exponent < -4 || exponent >= 16) { // "1e-05", "1.5e+16": C and Python write these alike
        g_string_append(out, text);
        return;
    }
    int decimals = (int)(e - text) - (*text == '-') - 1; // digits behind the first, and the point
    decimals = MAX(decimals - 1, 0) - exponent;
    char format[8];
    g_snprintf(format, sizeof format, "%%.%df", MAX(decimals, 1));
    g_string_append(out, g_ascii_formatd(text, sizeof text, format, value));
}
