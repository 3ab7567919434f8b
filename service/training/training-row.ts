import type { Head } from '#moderation/local/model.ts'

/** 1: the text belongs to the category, 0: it does not. A label that is missing is unknown and teaches nothing. */
export type Labels = Readonly<Partial<Record<Head, 0 | 1>>>

export type TrainingRow = {
  readonly text: string
  readonly labels: Labels
  /** How much the row counts, compared with others. */
  readonly weight: number
}

const textMax = 4_000

export const noCategory: Labels = { harassment: 0, hate: 0, illicit: 0, 'self-harm': 0 }

export function toRow(text: string, labels: Labels, weight = 1): TrainingRow {
  return { text: text.slice(0, textMax), labels, weight }
}
