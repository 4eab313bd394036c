// SPDX-License-Identifier: MIT
#include "models/data.h"

#include "sim/error.h"

#include <string.h>

char *nj_data_find(const char *relative_path)
{
    const char *roots[] = {g_getenv("NANOJOULE_DATA"), NJ_SOURCE_ROOT, NJ_DATA_DIR};
    for (gsize i = 0; i < G_N_ELEMENTS(roots); i++) {
        if (roots[i] == NULL)
            continue;
        g_autofree char *path = g_build_filename(roots[i], relative_path, NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS))
            return g_steal_pointer(&path);
    }
    return NULL;
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// "a, b, c": names of the shipped files with this suffix in a folder.
static char *list_shipped(const char *folder, const char *suffix)
{
    g_autofree char *path = nj_data_find(folder);
    g_autoptr(GDir) dir = path != NULL ? g_dir_open(path, 0, NULL) : NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *entry;
    while (dir != NULL && (entry = g_dir_read_name(dir)) != NULL)
        if (g_str_has_suffix(entry, suffix))
            g_ptr_array_add(names, g_strndup(entry, strlen(entry) - strlen(suffix)));
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return g_strjoinv(", ", (char **)names->pdata);
}

char *nj_data_locate(const char *folder, const char *name_or_path, const char *suffix, GError **error)
{
    if (strchr(name_or_path, '/') != NULL || g_str_has_suffix(name_or_path, suffix) ||
        g_str_has_suffix(name_or_path, ".json"))
        return g_strdup(name_or_path);
    g_autofree char *file = g_strconcat(folder, "/", name_or_path, suffix, NULL);
    g_autofree char *path = nj_data_find(file);
    if (path == NULL) {
        g_autofree char *known = list_shipped(folder, suffix);
        g_set_error(error, NJ_ERROR, NJ_ERROR_INPUT,
                    "%s: not in %s; shipped: %s; or give the path of a %s file", name_or_path, folder, known,
                    suffix);
        return NULL;
    }
    return g_steal_pointer(&path);
}
