import { readFileSync } from 'node:fs'

import { noCategory, toRow, type TrainingRow } from './training-row.ts'

type OwnTexts = { selfHarm: string[]; supportive: string[] }

/**
 * Short texts of our own, because the sets have hardly any about self-harm: what people in a crisis say or ask, without
 * methods, and answers, news and figures of speech with the same words. The tests use other texts.
 */
export function rowsOfOwnTexts(): TrainingRow[] {
  const file = new URL('own-texts.json', import.meta.url)
  const { selfHarm, supportive } = JSON.parse(readFileSync(file, 'utf8')) as OwnTexts
  return [
    ...selfHarm.map((text) => toRow(text, { hate: 0, 'self-harm': 1 })),
    ...supportive.map((text) => toRow(text, noCategory)),
  ]
}
