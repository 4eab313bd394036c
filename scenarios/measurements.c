// SPDX-License-Identifier: MIT
#include "scenarios/measurements-private.h"

#include "sim/error.h"

static const NjMeasurementForm *const forms[] = {&nj_measurement_form_plans, &nj_measurement_form_profile,
                                                 &nj_measurement_form_kernels};

guint nj_measurement_configuration(NjMeasurementSet *set, const char *name)
{
    for (guint i = 0; i < set->configurations->len; i++)
        if (g_str_equal(set->configurations->pdata[i], name))
            return i;
    g_ptr_array_add(set->configurations, g_strdup(name));
    return set->configurations->len - 1;
}

static const NjMeasurementForm *find_form(const NjCsv *csv)
{
    for (guint i = 0; i < G_N_ELEMENTS(forms); i++) {
        const char *const *column = forms[i]->columns;
        while (*column != NULL && nj_csv_column(csv, *column) >= 0)
            column++;
        if (*column == NULL)
            return forms[i];
    }
    return NULL;
}

NjMeasurementSet *nj_measurements_read(const char *path, const NjMeasurementOptions *options, GError **error)
{
    g_autoptr(NjCsv) csv = nj_csv_read(path, error);
    if (csv == NULL)
        return NULL;
    const NjMeasurementForm *form = find_form(csv);
    if (form == NULL) {
        g_autoptr(GString) known = g_string_new(NULL);
        for (guint i = 0; i < G_N_ELEMENTS(forms); i++) {
            g_autofree char *columns = g_strjoinv(",", (char **)forms[i]->columns);
            g_string_append_printf(known, "%s%s", i > 0 ? " or " : "", columns);
        }
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s:1: a header of no known form of measurements; needed are the columns %s", path,
                    known->str);
        return NULL;
    }
    g_autoptr(NjMeasurementSet) set = g_new0(NjMeasurementSet, 1);
    set->path = g_strdup(path);
    set->measurements = g_array_new(FALSE, TRUE, sizeof(NjMeasurement));
    set->configurations = g_ptr_array_new_with_free_func(g_free);
    if (!form->read(set, csv, options, error))
        return NULL;
    if (set->measurements->len == 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT, "%s: no rows of measurements", path);
        return NULL;
    }
    return g_steal_pointer(&set);
}

void nj_measurements_free(NjMeasurementSet *set)
{
    if (set == NULL)
        return;
    if (set->free_data != NULL)
        set->free_data(set->data);
    g_clear_pointer(&set->measurements, g_array_unref);
    g_clear_pointer(&set->configurations, g_ptr_array_unref);
    g_free(set->path);
    g_free(set);
}
