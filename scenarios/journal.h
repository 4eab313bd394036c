// SPDX-License-Identifier: MIT
#pragma once
// A journal: the file in which a sweep keeps finished points until they are folded into the result store.
// Records are only ever appended, each in one write with its length, key and checksum, so a process that is
// killed leaves at worst one torn record at the end, which the next open cuts off. A record that was appended
// survives the end of the process at once and a power failure once it was synchronised.
//
//   file:   "nanojoule journal 1\n", the header record, then records
//   record: size, key (32 bits each), first 8 bytes of the SHA-256 of key and payload, payload
//
// While a journal is open the file is locked: a second sweep of the same output is told so.

#include <glib.h>

G_BEGIN_DECLS

typedef struct NjJournal NjJournal;

// Opens or creates the journal at path, locks it and indexes its records. A file that is no journal is an
// error. Transfer full.
NjJournal *nj_journal_open(const char *path, GError **error);
// Closes and unlocks; a journal without records is removed.
void nj_journal_free(NjJournal *journal);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(NjJournal, nj_journal_free)

// The header as bytes, NULL in a new journal. Transfer full.
GByteArray *nj_journal_header(const NjJournal *journal);
// Begins a new journal. Must not have a header yet.
gboolean nj_journal_start(NjJournal *journal, const GByteArray *header, GError **error);

// Appends a record; any thread. On an error (a full disk) the journal stays as it was before the call.
gboolean nj_journal_append(NjJournal *journal, guint32 key, const GByteArray *payload, GError **error);
// Makes what was appended durable.
gboolean nj_journal_sync(NjJournal *journal, GError **error);

// Bytes that open cut off because they were no whole record.
gsize nj_journal_n_cut_bytes(const NjJournal *journal);

// Records, in ascending order of their keys after nj_journal_sort(); of records with equal keys only the
// first is kept. Not while other threads append.
void nj_journal_sort(NjJournal *journal);
guint nj_journal_n_records(const NjJournal *journal);
guint32 nj_journal_key(const NjJournal *journal, guint record);
// The payload replaces what payload holds.
gboolean nj_journal_read(const NjJournal *journal, guint record, GByteArray *payload, GError **error);

// Removes the file.
void nj_journal_remove(NjJournal *journal);

G_END_DECLS
