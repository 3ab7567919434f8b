import { readText } from '#moderation/local/read-text.ts'
import { hashTerm } from '#moderation/local/term-count.ts'

import type { DataFolder } from './data-folder.ts'

/**
 * The sexual terms of the list of profanities, as hashes: the scorer only has to recognise them, and nobody has to read
 * them in this repository. Terms of more than three words are left out.
 */
export function readSexualTerms(data: DataFolder): Set<number> {
  const hashes = data
    .table('surge-profanity/profanity_en.csv')
    .filter((row) => row['category_1']?.startsWith('sexual anatomy') === true)
    .map((row) => readText(row['text'] ?? ''))
    .map(({ text, bounds }) => hashTerm(text, bounds))
  return new Set(hashes.filter((hash) => hash !== undefined))
}
