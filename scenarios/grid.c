// SPDX-License-Identifier: MIT
#include "scenarios/grid.h"

#include "scenarios/where.h"
#include "sim/error.h"

#include <math.h>
#include <string.h>

#define MAX_AXIS_VALUES 100000

// Where a value stands, for messages.
typedef struct {
    const char *path, *group, *key, *value;
} Place;

static gboolean fail(const Place *place, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);

static gboolean fail(const Place *place, GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: [%s] %s = %s: %s", place->path, place->group,
                place->key, place->value, what);
    return FALSE;
}

static gboolean parse_number(const char *text, double *value)
{
    char *end;
    if (*text == '\0' || g_ascii_isspace(*text))
        return FALSE;
    *value = g_ascii_strtod(text, &end);
    return *end == '\0' && isfinite(*value);
}

static gboolean parse_integer(const char *text, gint64 *value)
{
    return g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, value, NULL);
}

static gboolean looks_numeric(const char *text)
{
    if (*text == '-' || *text == '+')
        text++;
    return g_ascii_isdigit(text[*text == '.']);
}

// An element that is a range or powers in form; what it says may still be wrong.
static gboolean is_range(const char *element)
{
    return looks_numeric(element) && strchr(element, ':') != NULL;
}

static gboolean is_powers(const char *element)
{
    return looks_numeric(element) && strstr(element, "..") != NULL;
}

static char *format_number(double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    return g_strdup(g_ascii_formatd(buffer, sizeof buffer, "%.12g", value));
}

static gboolean append_value(GPtrArray *values, char *value, const Place *place, GError **error)
{
    g_ptr_array_add(values, value);
    if (values->len > MAX_AXIS_VALUES)
        return fail(place, error, "more than %d values", MAX_AXIS_VALUES);
    return TRUE;
}

static gboolean expand_range(const char *element, GPtrArray *values, const Place *place, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(element, ":", -1);
    double number[3];
    gboolean good = g_strv_length(parts) == 3;
    for (guint i = 0; good && i < 3; i++)
        good = parse_number(g_strstrip(parts[i]), &number[i]);
    if (!good)
        return fail(place, error, "a range is start:stop:step, three numbers; '%s' is not", element);
    const double start = number[0], stop = number[1], step = number[2];
    if (step == 0)
        return fail(place, error, "the step of range '%s' is 0", element);
    if ((stop - start) / step < 0)
        return fail(place, error, "range '%s' never reaches its stop", element);
    // A step of 0.1 meets its stop but for rounding: a billionth of a step is forgiven.
    const double last = floor((stop - start) / step + 1e-9);
    for (double i = 0; i <= last; i++)
        if (!append_value(values, format_number(start + i * step), place, error))
            return FALSE;
    return TRUE;
}

static gboolean expand_powers(const char *element, GPtrArray *values, const Place *place, GError **error)
{
    const char *dots = strstr(element, "..");
    const char *star = strchr(element, '*');
    double start = 0, stop = 0, factor = 0;
    gboolean good = star != NULL && dots < star;
    if (good) {
        g_autofree char *first = g_strndup(element, (gsize)(dots - element));
        g_autofree char *second = g_strndup(dots + 2, (gsize)(star - dots - 2));
        g_autofree char *third = g_strdup(star + 1);
        good = parse_number(g_strstrip(first), &start) && parse_number(g_strstrip(second), &stop) &&
               parse_number(g_strstrip(third), &factor);
    }
    if (!good)
        return fail(place, error, "powers are start..stop *factor, three numbers; '%s' is not", element);
    if (start <= 0)
        return fail(place, error, "powers '%s' must start above 0", element);
    if (factor <= 1)
        return fail(place, error, "the factor of powers '%s' must be above 1", element);
    if (stop < start)
        return fail(place, error, "powers '%s' never reach their stop", element);
    for (double value = start; value <= stop * (1 + 1e-9); value *= factor)
        if (!append_value(values, format_number(value), place, error))
            return FALSE;
    return TRUE;
}

static gboolean expand(GPtrArray *values, const Place *place, GError **error)
{
    g_auto(GStrv) elements = g_strsplit(place->value, ";", -1);
    guint n = g_strv_length(elements);
    if (n > 1 && *g_strstrip(elements[n - 1]) == '\0')
        n--; // GLib writes lists with a ; behind the last value
    for (guint i = 0; i < n; i++) {
        const char *element = g_strstrip(elements[i]);
        gboolean good;
        if (*element == '\0')
            good = fail(place, error, "value %u of the list is empty", i + 1);
        else if (is_range(element))
            good = expand_range(element, values, place, error);
        else if (is_powers(element))
            good = expand_powers(element, values, place, error);
        else
            good = append_value(values, g_strdup(element), place, error);
        if (!good)
            return FALSE;
    }
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < values->len; i++)
        if (!g_hash_table_add(seen, values->pdata[i]))
            return fail(place, error, "'%s' is listed twice", (const char *)values->pdata[i]);
    return TRUE;
}

// The narrowest type that holds all values.
static NjColumnType axis_type(char **values)
{
    NjColumnType type = NJ_COLUMN_INTEGER;
    for (char **value = values; *value != NULL; value++) {
        gint64 integer;
        double number;
        if (!parse_number(*value, &number))
            return NJ_COLUMN_TEXT;
        if (!parse_integer(*value, &integer))
            type = NJ_COLUMN_REAL;
    }
    return type;
}

static gboolean is_literal(const char *const *literal, const char *group, const char *key)
{
    if (strchr(key, '[') != NULL) // a translation of GLib's key files
        return TRUE;
    if (literal == NULL)
        return FALSE;
    g_autofree char *full = g_strdup_printf("%s.%s", group, key);
    return g_strv_contains(literal, key) || g_strv_contains(literal, full);
}

static gboolean add_axis(NjGrid *grid, const Place *place, GError **error)
{
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(g_free);
    if (!expand(values, place, error))
        return FALSE;
    grid->axes = g_renew(NjAxis, grid->axes, grid->n_axes + 1);
    NjAxis *axis = &grid->axes[grid->n_axes++];
    axis->group = g_strdup(place->group);
    axis->key = g_strdup(place->key);
    axis->name = g_strdup(place->key);
    axis->description =
        g_strdup_printf("axis of the grid: %s in section %s of the scenario", place->key, place->group);
    axis->n_values = values->len;
    g_ptr_array_set_free_func(values, NULL);
    g_ptr_array_add(values, NULL);
    axis->values = (char **)g_ptr_array_free(g_steal_pointer(&values), FALSE);
    axis->type = axis_type(axis->values);
    axis->unit = g_strdup(axis->type == NJ_COLUMN_TEXT ? "" : "1");
    const guint64 product = (guint64)grid->n_points * axis->n_values;
    if (product > NJ_GRID_MAX_POINTS)
        return fail(place, error, "the grid has more than %d points", NJ_GRID_MAX_POINTS);
    grid->n_points = (guint)product;
    return TRUE;
}

static gboolean name_axes(NjGrid *grid, const char *path, GError **error)
{
    for (guint i = 0; i < grid->n_axes; i++)
        for (guint j = 0; j < grid->n_axes; j++)
            if (i != j && g_str_equal(grid->axes[i].key, grid->axes[j].key)) {
                g_free(grid->axes[i].name);
                grid->axes[i].name = g_strdup_printf("%s_%s", grid->axes[i].group, grid->axes[i].key);
            }
    for (guint i = 0; i < grid->n_axes; i++)
        for (guint j = 0; j < i; j++)
            if (g_str_equal(grid->axes[i].name, grid->axes[j].name)) {
                g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: two axes would be called %s", path,
                            grid->axes[i].name);
                return FALSE;
            }
    return TRUE;
}

NjGrid *nj_grid_new(GKeyFile *file, const char *path, const char *const *literal, GError **error)
{
    g_autoptr(NjGrid) grid = g_new0(NjGrid, 1);
    grid->n_points = 1;
    g_auto(GStrv) groups = g_key_file_get_groups(file, NULL);
    for (char **group = groups; *group != NULL; group++) {
        g_auto(GStrv) keys = g_key_file_get_keys(file, *group, NULL, NULL);
        for (char **key = keys; keys != NULL && *key != NULL; key++) {
            g_autofree char *value = g_key_file_get_value(file, *group, *key, NULL);
            if (value == NULL || is_literal(literal, *group, *key))
                continue;
            g_strstrip(value);
            if (strchr(value, ';') == NULL && !is_range(value) && !is_powers(value))
                continue;
            const Place place = {path, *group, *key, value};
            if (!add_axis(grid, &place, error))
                return NULL;
        }
    }
    return name_axes(grid, path, error) ? g_steal_pointer(&grid) : NULL;
}

void nj_grid_free(NjGrid *grid)
{
    if (grid == NULL)
        return;
    for (guint i = 0; i < grid->n_axes; i++) {
        g_free(grid->axes[i].group);
        g_free(grid->axes[i].key);
        g_free(grid->axes[i].name);
        g_free(grid->axes[i].unit);
        g_free(grid->axes[i].description);
        g_strfreev(grid->axes[i].values);
    }
    g_free(grid->axes);
    g_free(grid);
}

const char *nj_grid_value(const NjGrid *grid, guint point, guint axis)
{
    g_assert(point < grid->n_points && axis < grid->n_axes);
    for (guint i = grid->n_axes - 1; i > axis; i--)
        point /= grid->axes[i].n_values;
    return grid->axes[axis].values[point % grid->axes[axis].n_values];
}

void nj_grid_apply(const NjGrid *grid, guint point, GKeyFile *scenario)
{
    for (guint i = 0; i < grid->n_axes; i++)
        g_key_file_set_value(scenario, grid->axes[i].group, grid->axes[i].key, nj_grid_value(grid, point, i));
}

char *nj_grid_describe(const NjGrid *grid, guint point)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < grid->n_axes; i++)
        g_string_append_printf(text, "%s%s = %s", i == 0 ? "" : ", ", grid->axes[i].name,
                               nj_grid_value(grid, point, i));
    return g_string_free(g_steal_pointer(&text), FALSE);
}

void nj_grid_columns(const NjGrid *grid, NjColumn *columns)
{
    for (guint i = 0; i < grid->n_axes; i++) {
        const NjAxis *axis = &grid->axes[i];
        columns[i] = (NjColumn){axis->name, axis->type, 3, axis->unit, axis->description};
    }
}

void nj_grid_fill_row(const NjGrid *grid, guint point, NjTable *table, guint first)
{
    for (guint i = 0; i < grid->n_axes; i++) {
        const char *value = nj_grid_value(grid, point, i);
        switch (grid->axes[i].type) {
        case NJ_COLUMN_TEXT:
            nj_table_set_text(table, first + i, value);
            break;
        case NJ_COLUMN_INTEGER:
            nj_table_set_integer(table, first + i, g_ascii_strtoll(value, NULL, 10));
            break;
        case NJ_COLUMN_REAL:
            nj_table_set_real(table, first + i, g_ascii_strtod(value, NULL));
            break;
        }
    }
}

GArray *nj_grid_select(const NjGrid *grid, const NjSelection *selection, GError **error)
{
    g_assert(selection->n_shards == 0 || selection->shard < selection->n_shards);
    g_autofree NjColumn *columns = g_new0(NjColumn, grid->n_axes);
    nj_grid_columns(grid, columns);
    g_autoptr(NjTable) row = nj_table_new(columns, grid->n_axes);
    g_autoptr(NjWhere) where = NULL;
    if (selection->where != NULL) {
        where = nj_where_new(selection->where, columns, grid->n_axes, error);
        if (where == NULL)
            return NULL;
    }
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(guint));
    guint n_matched = 0;
    for (guint point = 0; point < grid->n_points; point++) {
        if (selection->limit > 0 && n_matched == selection->limit)
            break;
        if (where != NULL) {
            nj_table_clear_rows(row);
            nj_table_add_row(row);
            nj_grid_fill_row(grid, point, row, 0);
            if (!nj_where_match(where, row, 0))
                continue;
        }
        if (selection->n_shards == 0 || n_matched % selection->n_shards == selection->shard)
            g_array_append_val(points, point);
        n_matched++;
    }
    return g_steal_pointer(&points);
}

gboolean nj_shard_parse(const char *text, guint *shard, guint *n_shards, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(text, "/", -1);
    guint64 i, n;
    if (g_strv_length(parts) == 2 && g_ascii_string_to_unsigned(parts[0], 10, 0, 999999, &i, NULL) &&
        g_ascii_string_to_unsigned(parts[1], 10, 1, 1000000, &n, NULL) && i < n) {
        *shard = (guint)i;
        *n_shards = (guint)n;
        return TRUE;
    }
    g_set_error(error, NJ_ERROR, NJ_ERROR_USAGE,
                "--shard %s: i/n is needed, the i-th of n shards counted from 0, such as 0/4", text);
    return FALSE;
}
