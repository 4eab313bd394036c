// SPDX-License-Identifier: MIT
#include "scenarios/where.h"

#include "sim/error.h"

#include <math.h>
#include <string.h>

typedef enum { OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE } Op;

typedef struct {
    guint column;
    NjColumnType type;
    Op op;
    char *text;
    double number;
} Condition;

struct NjWhere {
    Condition *conditions; // [n]
    guint n;
};

// Longest first, so that <= is not read as < and a stray =.
static const struct {
    const char *text;
    Op op;
} operators[] = {
    {"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE}, {"=", OP_EQ}, {"<", OP_LT}, {">", OP_GT},
};

static gboolean fail(const char *text, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);

static gboolean fail(const char *text, GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "--where \"%s\": %s", text, what);
    return FALSE;
}

static void skip_spaces(const char **p)
{
    while (g_ascii_isspace(**p))
        (*p)++;
}

static gboolean ends_word(char c)
{
    return c == '\0' || g_ascii_isspace(c) || strchr("=!<>'\"", c) != NULL;
}

static char *take_word(const char **p)
{
    const char *start = *p;
    while (!ends_word(**p))
        (*p)++;
    return g_strndup(start, (gsize)(*p - start));
}

static gboolean take_column(const char *text, const char **p, Condition *condition, const NjColumn *columns,
                            guint n_columns, GError **error)
{
    skip_spaces(p);
    g_autofree char *name = take_word(p);
    if (*name == '\0')
        return fail(text, error, "a column name is needed %s%s", **p == '\0' ? "at the end" : "before ", *p);
    for (guint c = 0; c < n_columns; c++)
        if (g_str_equal(columns[c].name, name)) {
            condition->column = c;
            condition->type = columns[c].type;
            return TRUE;
        }
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint c = 0; c < n_columns; c++)
        g_string_append_printf(known, "%s%s", c == 0 ? "" : ", ", columns[c].name);
    return fail(text, error, "no column '%s'; there are: %s", name, known->str);
}

static gboolean take_operator(const char *text, const char **p, const NjColumn *column, Condition *condition,
                              GError **error)
{
    skip_spaces(p);
    for (guint i = 0; i < G_N_ELEMENTS(operators); i++) {
        if (!g_str_has_prefix(*p, operators[i].text))
            continue;
        *p += strlen(operators[i].text);
        condition->op = operators[i].op;
        if (column->type == NJ_COLUMN_TEXT && condition->op != OP_EQ && condition->op != OP_NE)
            return fail(text, error, "%s is text, which compares with = and != only", column->name);
        return TRUE;
    }
    return fail(text, error, "one of = != < <= > >= is needed after '%s'", column->name);
}

static gboolean take_value(const char *text, const char **p, const NjColumn *column, Condition *condition,
                           GError **error)
{
    skip_spaces(p);
    if (**p == '\'' || **p == '"') {
        const char *end = strchr(*p + 1, **p);
        if (end == NULL)
            return fail(text, error, "the quote %c is not closed", **p);
        condition->text = g_strndup(*p + 1, (gsize)(end - *p - 1));
        *p = end + 1;
    } else {
        condition->text = take_word(p);
        if (*condition->text == '\0')
            return fail(text, error, "a value is needed after '%s'", column->name);
    }
    if (column->type == NJ_COLUMN_TEXT)
        return TRUE;
    char *end;
    condition->number = g_ascii_strtod(condition->text, &end);
    if (*condition->text == '\0' || *end != '\0' || !isfinite(condition->number))
        return fail(text, error, "%s is a number, '%s' is not", column->name, condition->text);
    return TRUE;
}

NjWhere *nj_where_new(const char *text, const NjColumn *columns, guint n_columns, GError **error)
{
    g_autoptr(NjWhere) where = g_new0(NjWhere, 1);
    const char *p = text;
    for (;;) {
        where->conditions = g_renew(Condition, where->conditions, where->n + 1);
        Condition *condition = &where->conditions[where->n++];
        *condition = (Condition){0};
        if (!take_column(text, &p, condition, columns, n_columns, error))
            return NULL;
        const NjColumn *column = &columns[condition->column];
        if (!take_operator(text, &p, column, condition, error) ||
            !take_value(text, &p, column, condition, error))
            return NULL;
        const char *after = p;
        skip_spaces(&p);
        if (*p == '\0')
            return g_steal_pointer(&where);
        g_autofree char *word = take_word(&p);
        if (after == p || g_ascii_strcasecmp(word, "and") != 0) {
            skip_spaces(&after);
            fail(text, error, "'and' is needed before '%s'", after);
            return NULL;
        }
    }
}

void nj_where_free(NjWhere *where)
{
    if (where == NULL)
        return;
    for (guint i = 0; i < where->n; i++)
        g_free(where->conditions[i].text);
    g_free(where->conditions);
    g_free(where);
}

static gboolean holds(Op op, int order)
{
    switch (op) {
    case OP_EQ:
        return order == 0;
    case OP_NE:
        return order != 0;
    case OP_LT:
        return order < 0;
    case OP_LE:
        return order <= 0;
    case OP_GT:
        return order > 0;
    case OP_GE:
        return order >= 0;
    }
    g_assert_not_reached();
}

gboolean nj_where_match(const NjWhere *where, const NjTable *table, guint row)
{
    for (guint i = 0; i < where->n; i++) {
        const Condition *condition = &where->conditions[i];
        if (nj_table_is_missing(table, row, condition->column))
            return FALSE;
        int order = 0;
        if (condition->type == NJ_COLUMN_TEXT) {
            order = strcmp(nj_table_get_text(table, row, condition->column), condition->text);
        } else {
            const double value = condition->type == NJ_COLUMN_INTEGER
                                     ? (double)nj_table_get_integer(table, row, condition->column)
                                     : nj_table_get_real(table, row, condition->column);
            order = (value > condition->number) - (value < condition->number);
        }
        if (!holds(condition->op, order))
            return FALSE;
    }
    return TRUE;
}
