// SPDX-License-Identifier: MIT
#include "scenarios/table.h"

#include "sim/error.h"

#include <math.h>
#include <string.h>

typedef union {
    char *text;
    gint64 integer;
    double real;
} Cell;

typedef struct {
    Cell value;
    gboolean set;
} Slot;

struct NjTable {
    NjColumn *columns; // [n_columns]
    guint n_columns;
    GArray *slots; // Slot [n_rows * n_columns], row by row
    guint n_rows;
};

NjTable *nj_table_new(const NjColumn *columns, guint n_columns)
{
    NjTable *table = g_new0(NjTable, 1);
    table->columns = g_memdup2(columns, n_columns * sizeof *columns);
    table->n_columns = n_columns;
    table->slots = g_array_new(FALSE, TRUE, sizeof(Slot));
    return table;
}

static Slot *slot_at(const NjTable *table, guint row, guint column)
{
    g_assert(row < table->n_rows && column < table->n_columns);
    return &g_array_index(table->slots, Slot, (gsize)row * table->n_columns + column);
}

static Slot *slot_typed(const NjTable *table, guint row, guint column, NjColumnType type)
{
    Slot *slot = slot_at(table, row, column);
    g_assert(table->columns[column].type == type);
    return slot;
}

void nj_table_clear_rows(NjTable *table)
{
    for (guint row = 0; row < table->n_rows; row++)
        for (guint column = 0; column < table->n_columns; column++)
            if (table->columns[column].type == NJ_COLUMN_TEXT)
                g_free(slot_at(table, row, column)->value.text);
    g_array_set_size(table->slots, 0);
    table->n_rows = 0;
}

void nj_table_free(NjTable *table)
{
    if (table == NULL)
        return;
    nj_table_clear_rows(table);
    g_array_free(table->slots, TRUE);
    g_free(table->columns);
    g_free(table);
}

void nj_table_add_row(NjTable *table)
{
    table->n_rows++;
    g_array_set_size(table->slots, table->n_rows * table->n_columns);
}

void nj_table_set_text(NjTable *table, guint column, const char *value)
{
    Slot *slot = slot_typed(table, table->n_rows - 1, column, NJ_COLUMN_TEXT);
    g_free(slot->value.text);
    slot->value.text = g_strdup(value);
    slot->set = value != NULL;
}

void nj_table_set_integer(NjTable *table, guint column, gint64 value)
{
    Slot *slot = slot_typed(table, table->n_rows - 1, column, NJ_COLUMN_INTEGER);
    slot->value.integer = value;
    slot->set = TRUE;
}

void nj_table_set_real(NjTable *table, guint column, double value)
{
    Slot *slot = slot_typed(table, table->n_rows - 1, column, NJ_COLUMN_REAL);
    slot->value.real = value;
    slot->set = isfinite(value);
}

void nj_table_copy_cell(NjTable *to, guint to_column, const NjTable *from, guint row, guint column)
{
    const NjColumnType type = from->columns[column].type;
    const Slot *source = slot_at(from, row, column);
    Slot *target = slot_typed(to, to->n_rows - 1, to_column, type);
    if (type == NJ_COLUMN_TEXT) {
        g_free(target->value.text);
        target->value.text = g_strdup(source->value.text);
    } else {
        target->value = source->value;
    }
    target->set = source->set;
}

int nj_table_find_column(const NjTable *table, const char *name)
{
    for (guint c = 0; c < table->n_columns; c++)
        if (g_str_equal(table->columns[c].name, name))
            return (int)c;
    return -1;
}

guint nj_table_n_rows(const NjTable *table)
{
    return table->n_rows;
}

guint nj_table_n_columns(const NjTable *table)
{
    return table->n_columns;
}

const NjColumn *nj_table_column(const NjTable *table, guint column)
{
    g_assert(column < table->n_columns);
    return &table->columns[column];
}

gboolean nj_table_is_missing(const NjTable *table, guint row, guint column)
{
    return !slot_at(table, row, column)->set;
}

const char *nj_table_get_text(const NjTable *table, guint row, guint column)
{
    return slot_typed(table, row, column, NJ_COLUMN_TEXT)->value.text;
}

gint64 nj_table_get_integer(const NjTable *table, guint row, guint column)
{
    return slot_typed(table, row, column, NJ_COLUMN_INTEGER)->value.integer;
}

double nj_table_get_real(const NjTable *table, guint row, guint column)
{
    const Slot *slot = slot_typed(table, row, column, NJ_COLUMN_REAL);
    return slot->set ? slot->value.real : (double)NAN;
}

// A number as machines read it: up to 9 significant digits, a point whatever the locale.
static char *format_real(double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    return g_strdup(g_ascii_formatd(buffer, sizeof buffer, "%.9g", value));
}

static char *format_cell(const NjTable *table, guint row, guint column, NjFormat format)
{
    const Slot *slot = slot_at(table, row, column);
    const NjColumn *info = &table->columns[column];
    switch (info->type) {
    case NJ_COLUMN_TEXT:
        return g_strdup(slot->value.text);
    case NJ_COLUMN_INTEGER:
        return g_strdup_printf("%" G_GINT64_FORMAT, slot->value.integer);
    case NJ_COLUMN_REAL:
        if (format == NJ_FORMAT_TEXT) {
            char pattern[16];
            char buffer[G_ASCII_DTOSTR_BUF_SIZE + 32];
            g_snprintf(pattern, sizeof pattern, "%%.%df", info->digits);
            return g_strdup(g_ascii_formatd(buffer, sizeof buffer, pattern, slot->value.real));
        }
        return format_real(slot->value.real);
    }
    g_assert_not_reached();
}

static void print_text(const NjTable *table, FILE *out)
{
    g_autofree int *widths = g_new0(int, table->n_columns);
    for (guint c = 0; c < table->n_columns; c++) {
        widths[c] = (int)g_utf8_strlen(table->columns[c].name, -1);
        for (guint r = 0; r < table->n_rows; r++) {
            if (nj_table_is_missing(table, r, c))
                continue;
            g_autofree char *cell = format_cell(table, r, c, NJ_FORMAT_TEXT);
            widths[c] = MAX(widths[c], (int)g_utf8_strlen(cell, -1));
        }
    }
    for (guint line = 0; line <= table->n_rows; line++) {
        g_autoptr(GString) text = g_string_new(NULL);
        for (guint c = 0; c < table->n_columns; c++) {
            g_autofree char *cell = NULL;
            if (line == 0)
                cell = g_strdup(table->columns[c].name);
            else if (nj_table_is_missing(table, line - 1, c))
                cell = g_strdup("-");
            else
                cell = format_cell(table, line - 1, c, NJ_FORMAT_TEXT);
            const int pad = widths[c] - (int)g_utf8_strlen(cell, -1);
            const gboolean left = table->columns[c].type == NJ_COLUMN_TEXT;
            g_string_append_printf(text, "%s%*s%s%*s", c == 0 ? "" : "  ", left ? 0 : pad, "", cell,
                                   left ? pad : 0, "");
        }
        fprintf(out, "%s\n", g_strchomp(text->str));
    }
}

static void print_csv_field(const char *field, FILE *out)
{
    if (strpbrk(field, ",\"\n\r") == NULL) {
        fputs(field, out);
        return;
    }
    fputc('"', out);
    for (const char *p = field; *p != '\0'; p++) {
        if (*p == '"')
            fputc('"', out);
        fputc(*p, out);
    }
    fputc('"', out);
}

static void print_csv(const NjTable *table, FILE *out)
{
    for (guint c = 0; c < table->n_columns; c++)
        fprintf(out, "%s%s", c == 0 ? "" : ",", table->columns[c].name);
    fputc('\n', out);
    for (guint r = 0; r < table->n_rows; r++) {
        for (guint c = 0; c < table->n_columns; c++) {
            if (c > 0)
                fputc(',', out);
            if (nj_table_is_missing(table, r, c))
                continue;
            g_autofree char *cell = format_cell(table, r, c, NJ_FORMAT_CSV);
            print_csv_field(cell, out);
        }
        fputc('\n', out);
    }
}

static void print_json_string(const char *text, FILE *out)
{
    fputc('"', out);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if ((guchar)*p < 0x20)
            fprintf(out, "\\u%04x", (guchar)*p);
        else
            fputc(*p, out);
    }
    fputc('"', out);
}

static void print_json(const NjTable *table, FILE *out)
{
    fputs("[", out);
    for (guint r = 0; r < table->n_rows; r++) {
        fputs(r == 0 ? "\n  {" : ",\n  {", out);
        for (guint c = 0; c < table->n_columns; c++) {
            fputs(c == 0 ? "" : ", ", out);
            print_json_string(table->columns[c].name, out);
            fputs(": ", out);
            if (nj_table_is_missing(table, r, c)) {
                fputs("null", out);
                continue;
            }
            g_autofree char *cell = format_cell(table, r, c, NJ_FORMAT_JSON);
            if (table->columns[c].type == NJ_COLUMN_TEXT)
                print_json_string(cell, out);
            else
                fputs(cell, out);
        }
        fputs("}", out);
    }
    fputs(table->n_rows == 0 ? "]\n" : "\n]\n", out);
}

void nj_table_print(const NjTable *table, NjFormat format, FILE *out)
{
    switch (format) {
    case NJ_FORMAT_TEXT:
        print_text(table, out);
        break;
    case NJ_FORMAT_CSV:
        print_csv(table, out);
        break;
    case NJ_FORMAT_JSON:
        print_json(table, out);
        break;
    }
}

gboolean nj_format_parse(const char *name, NjFormat *format, GError **error)
{
    static const char *const names[] = {
        [NJ_FORMAT_TEXT] = "text", [NJ_FORMAT_CSV] = "csv", [NJ_FORMAT_JSON] = "json"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(name, names[i])) {
            *format = (NjFormat)i;
            return TRUE;
        }
    }
    if (g_str_equal(name, "table")) {
        *format = NJ_FORMAT_TEXT;
        return TRUE;
    }
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE, "--format %s: text, csv or json is needed", name);
    return FALSE;
}
