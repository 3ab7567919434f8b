import { readText } from '#moderation/local/read-text.ts'

import { readBenignTexts } from './benign.ts'
import type { DataFolder } from './data-folder.ts'
import { readHeldOut } from './held-out.ts'
import { createRandom } from './random.ts'
import { rowsOfOwnTexts } from './rows-of-own-texts.ts'
import {
  rowsOfAbusedBots,
  rowsOfComments,
  rowsOfSexism,
  rowsOfSlurs,
  rowsOfToxicSpans,
  rowsOfTweets,
} from './rows-of-posts.ts'
import {
  rowsOfAttacks,
  rowsOfHarmBench,
  rowsOfHazards,
  rowsOfQuestions,
} from './rows-of-prompts.ts'
import { noCategory, toRow, type TrainingRow } from './training-row.ts'

const sampleSeed = 11

/**
 * Everything that may be trained on. The sets share texts: prompts that measure the model are also in sets to train on.
 * Those are left out here, compared by their words.
 */
export function readTrainingRows(data: DataFolder): TrainingRow[] {
  const random = createRandom(sampleSeed)
  const rows = [
    ...rowsOfTweets(data, random),
    ...rowsOfSexism(data, random),
    ...rowsOfAbusedBots(data, 'train'),
    ...rowsOfAbusedBots(data, 'valid'),
    ...rowsOfToxicSpans(data, random),
    ...rowsOfComments(data),
    ...rowsOfHazards(data),
    ...rowsOfHarmBench(data),
    ...rowsOfAttacks(data),
    ...rowsOfQuestions(data),
    ...rowsOfSlurs(data),
    ...rowsOfOwnTexts(),
    ...readBenignTexts(data).training.map((text) => toRow(text, noCategory)),
  ]
  const heldOut = new Set(readHeldOut(data).everyText.map(wordsOf))
  return rows.filter(({ text }) => text.trim() !== '' && !heldOut.has(wordsOf(text)))
}

/** Two texts with the same words are the same text, whatever stands between them. */
export function wordsOf(original: string): string {
  const { text, bounds } = readText(original)
  const words: string[] = []
  for (let index = 0; index < bounds.length; index += 2) {
    words.push(text.slice(bounds[index], bounds[index + 1]))
  }
  return words.join(' ')
}
