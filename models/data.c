// SPDX-License-Identifier: MIT
#include "models/data.h"

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
