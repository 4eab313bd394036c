// SPDX-License-Identifier: MIT
#include "scenarios/journal.h"

#include "sim/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "nanojoule journal 1\n"
#define MAGIC_SIZE (sizeof MAGIC - 1)
#define FRAME_SIZE 16 // bytes before a payload
#define CHECKSUM_SIZE 8
#define HEADER_KEY G_MAXUINT32

typedef struct {
    guint32 key;
    guint32 size;  // of the payload, bytes
    off_t payload; // where it begins
} Record;

struct NjJournal {
    char *path;
    int fd;
    off_t end; // of the last whole record
    gboolean has_header, removed;
    gboolean opened; // locked, and a journal
    Record header;
    GArray *records; // Record
    gsize n_cut_bytes;
    GMutex mutex; // guards end and records while threads append
};

static gboolean fail(const NjJournal *journal, const char *what, int code, GError **error)
{
    g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: %s: %s", journal->path, what, g_strerror(code));
    return FALSE;
}

static void checksum(guint32 key, const guint8 *payload, gsize size, guint8 sum[CHECKSUM_SIZE])
{
    g_autoptr(GChecksum) sha = g_checksum_new(G_CHECKSUM_SHA256);
    const guint32 little = GUINT32_TO_LE(key);
    g_checksum_update(sha, (const guchar *)&little, sizeof little);
    g_checksum_update(sha, payload, (gssize)size);
    guint8 digest[32];
    gsize length = sizeof digest;
    g_checksum_get_digest(sha, digest, &length);
    memcpy(sum, digest, CHECKSUM_SIZE);
}

// Reads exactly size bytes; FALSE with errno 0 where the file ends before.
static gboolean read_at(int fd, gpointer to, gsize size, off_t offset)
{
    guint8 *bytes = (guint8 *)to;
    while (size > 0) {
        const ssize_t n = pread(fd, bytes, size, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                errno = 0;
            return FALSE;
        }
        bytes += n;
        size -= (gsize)n;
        offset += n;
    }
    return TRUE;
}

// Writes all bytes, or gives FALSE with errno.
static gboolean write_at(int fd, const guint8 *bytes, gsize size, off_t offset)
{
    while (size > 0) {
        const ssize_t n = pwrite(fd, bytes, size, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                errno = ENOSPC;
            return FALSE;
        }
        bytes += n;
        size -= (gsize)n;
        offset += n;
    }
    return TRUE;
}

// Finds the record at an offset. FALSE where there is no whole one.
static gboolean scan_record(const NjJournal *journal, off_t offset, off_t file_size, Record *record,
                            GByteArray *payload)
{
    guint8 frame[FRAME_SIZE], sum[CHECKSUM_SIZE];
    if (file_size - offset < FRAME_SIZE || !read_at(journal->fd, frame, FRAME_SIZE, offset))
        return FALSE;
    memcpy(&record->size, frame, 4);
    memcpy(&record->key, frame + 4, 4);
    record->size = GUINT32_FROM_LE(record->size);
    record->key = GUINT32_FROM_LE(record->key);
    record->payload = offset + FRAME_SIZE;
    if (record->size > file_size - record->payload)
        return FALSE;
    g_byte_array_set_size(payload, record->size);
    if (!read_at(journal->fd, payload->data, record->size, record->payload))
        return FALSE;
    checksum(record->key, payload->data, record->size, sum);
    return memcmp(sum, frame + 8, CHECKSUM_SIZE) == 0;
}

// Indexes what is whole and cuts off the rest.
static gboolean scan(NjJournal *journal, GError **error)
{
    struct stat status;
    if (fstat(journal->fd, &status) != 0)
        return fail(journal, "cannot read", errno, error);
    char magic[MAGIC_SIZE] = {0};
    const gsize n = MIN((gsize)status.st_size, MAGIC_SIZE);
    if (!read_at(journal->fd, magic, n, 0))
        return fail(journal, "cannot read", errno, error);
    if (memcmp(magic, MAGIC, n) != 0) {
        g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: not a journal of a sweep; it is in the way",
                    journal->path);
        return FALSE;
    }
    g_autoptr(GByteArray) payload = g_byte_array_new();
    Record record;
    journal->end = n < MAGIC_SIZE ? 0 : MAGIC_SIZE;
    while (journal->end > 0 && scan_record(journal, journal->end, status.st_size, &record, payload)) {
        if (!journal->has_header && record.key != HEADER_KEY)
            break;
        if (journal->has_header)
            g_array_append_val(journal->records, record);
        else
            journal->header = record;
        journal->has_header = TRUE;
        journal->end = record.payload + record.size;
    }
    if (!journal->has_header)
        journal->end = 0;
    journal->n_cut_bytes = journal->has_header ? (gsize)(status.st_size - journal->end) : 0;
    if (status.st_size > journal->end && ftruncate(journal->fd, journal->end) != 0)
        return fail(journal, "cannot cut off a torn record", errno, error);
    return TRUE;
}

// Opens and locks the file that is at the path once the lock is held: another sweep may have removed the one
// that was opened.
static gboolean open_locked(NjJournal *journal, GError **error)
{
    for (;;) {
        journal->fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (journal->fd < 0)
            return fail(journal, "cannot open", errno, error);
        if (flock(journal->fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK)
                return fail(journal, "cannot lock", errno, error);
            g_set_error(error, NJ_ERROR, NJ_ERROR_FILE, "%s: another sweep is writing it", journal->path);
            return FALSE;
        }
        struct stat ours, there;
        if (fstat(journal->fd, &ours) == 0 && stat(journal->path, &there) == 0 && ours.st_ino == there.st_ino)
            return TRUE;
        close(journal->fd);
    }
}

NjJournal *nj_journal_open(const char *path, GError **error)
{
    NjJournal *journal = g_new0(NjJournal, 1);
    journal->path = g_strdup(path);
    journal->records = g_array_new(FALSE, FALSE, sizeof(Record));
    g_mutex_init(&journal->mutex);
    journal->opened = open_locked(journal, error) && scan(journal, error);
    if (journal->opened)
        return journal;
    nj_journal_free(journal);
    return NULL;
}

void nj_journal_free(NjJournal *journal)
{
    if (journal == NULL)
        return;
    if (journal->opened && journal->records->len == 0)
        nj_journal_remove(journal);
    if (journal->fd >= 0)
        close(journal->fd);
    g_mutex_clear(&journal->mutex);
    g_array_free(journal->records, TRUE);
    g_free(journal->path);
    g_free(journal);
}

static gboolean read_payload(const NjJournal *journal, const Record *record, GByteArray *payload)
{
    g_byte_array_set_size(payload, record->size);
    return read_at(journal->fd, payload->data, record->size, record->payload);
}

GByteArray *nj_journal_header(const NjJournal *journal)
{
    if (!journal->has_header)
        return NULL;
    GByteArray *header = g_byte_array_new();
    if (!read_payload(journal, &journal->header, header))
        g_byte_array_set_size(header, 0);
    return header;
}

static gboolean append_record(NjJournal *journal, guint32 key, const GByteArray *payload, Record *record,
                              GError **error)
{
    g_autoptr(GByteArray) frame = g_byte_array_sized_new(FRAME_SIZE + payload->len);
    const guint32 head[2] = {GUINT32_TO_LE(payload->len), GUINT32_TO_LE(key)};
    guint8 sum[CHECKSUM_SIZE];
    checksum(key, payload->data, payload->len, sum);
    g_byte_array_append(frame, (const guint8 *)head, sizeof head);
    g_byte_array_append(frame, sum, sizeof sum);
    g_byte_array_append(frame, payload->data, payload->len);
    *record = (Record){key, payload->len, journal->end + FRAME_SIZE};
    if (!write_at(journal->fd, frame->data, frame->len, journal->end)) {
        const int code = errno;
        (void)!ftruncate(journal->fd, journal->end); // where even that fails, the next open cuts it off
        return fail(journal, "cannot write", code, error);
    }
    journal->end += frame->len;
    return TRUE;
}

gboolean nj_journal_start(NjJournal *journal, const GByteArray *header, GError **error)
{
    g_assert(!journal->has_header);
    if (!write_at(journal->fd, (const guint8 *)MAGIC, MAGIC_SIZE, 0))
        return fail(journal, "cannot write", errno, error);
    journal->end = MAGIC_SIZE;
    journal->has_header = append_record(journal, HEADER_KEY, header, &journal->header, error);
    return journal->has_header;
}

gboolean nj_journal_append(NjJournal *journal, guint32 key, const GByteArray *payload, GError **error)
{
    g_assert(journal->has_header && key != HEADER_KEY);
    Record record;
    g_mutex_lock(&journal->mutex);
    const gboolean good = append_record(journal, key, payload, &record, error);
    if (good)
        g_array_append_val(journal->records, record);
    g_mutex_unlock(&journal->mutex);
    return good;
}

gboolean nj_journal_sync(NjJournal *journal, GError **error)
{
    return fdatasync(journal->fd) == 0 || fail(journal, "cannot write", errno, error);
}

gsize nj_journal_n_cut_bytes(const NjJournal *journal)
{
    return journal->n_cut_bytes;
}

static int compare_records(gconstpointer a, gconstpointer b)
{
    const Record *x = (const Record *)a, *y = (const Record *)b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->payload > y->payload) - (x->payload < y->payload);
}

void nj_journal_sort(NjJournal *journal)
{
    g_array_sort(journal->records, compare_records);
    guint kept = 0;
    for (guint i = 0; i < journal->records->len; i++) {
        const Record record = g_array_index(journal->records, Record, i);
        if (kept == 0 || g_array_index(journal->records, Record, kept - 1).key != record.key)
            g_array_index(journal->records, Record, kept++) = record;
    }
    g_array_set_size(journal->records, kept);
}

guint nj_journal_n_records(const NjJournal *journal)
{
    return journal->records->len;
}

guint32 nj_journal_key(const NjJournal *journal, guint record)
{
    return g_array_index(journal->records, Record, record).key;
}

gboolean nj_journal_read(const NjJournal *journal, guint record, GByteArray *payload, GError **error)
{
    g_assert(record < journal->records->len);
    return read_payload(journal, &g_array_index(journal->records, Record, record), payload) ||
           fail(journal, "cannot read", errno, error);
}

void nj_journal_remove(NjJournal *journal)
{
    if (!journal->removed)
        unlink(journal->path);
    journal->removed = TRUE;
}
