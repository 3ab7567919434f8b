import type { DataFolder } from './data-folder.ts'
import type { Random } from './random.ts'
import { type Labels, noCategory, toRow, type TrainingRow } from './training-row.ts'

// Posts, comments and what people wrote to chat bots.

const hateful: Labels = { ...noCategory, harassment: 1, hate: 1 }

/** Offensive posts are by far the most, so only a part of them is taken. */
const offensiveShare = 0.35

export function rowsOfTweets(data: DataFolder, random: Random): TrainingRow[] {
  const rows = data.table('davidson-hate-offensive/labeled_data.csv')
  return rows.flatMap(({ tweet = '', class: kind }) => {
    const text = tweet
      .replaceAll(/&#\d+;/g, ' ')
      .replaceAll('&amp;', '&')
      .replaceAll(/https?:\S+/g, '')
    if (kind === '0') return [toRow(text, hateful)]
    if (kind === '2') return [toRow(text, noCategory)]
    const isTaken = random() < offensiveShare
    return isTaken ? [toRow(text, { hate: 0, illicit: 0, 'self-harm': 0 })] : []
  })
}

const otherPostsShare = 0.6

export function rowsOfSexism(data: DataFolder, random: Random): TrainingRow[] {
  const rows = data.table('edos-sexism/edos_labelled_aggregated.csv')
  return rows.flatMap((row) => {
    const text = (row['text'] ?? '').replaceAll(/\[USER\]|\[URL\]/g, '')
    if (row['label_sexist'] === 'sexist') {
      const isThreatOrDerogation = /^[12]/.test(row['label_category'] ?? '')
      const labels: Labels = { hate: 1, illicit: 0, 'self-harm': 0 }
      return [toRow(text, isThreatOrDerogation ? hateful : labels)]
    }
    if (random() >= otherPostsShare) return []
    // They are not sexist; whether they insult somebody in another way is not known.
    return [toRow(text, { hate: 0, illicit: 0, 'self-harm': 0 }, 0.5)]
  })
}

/** Up to eight people labelled each row; `None` is a missing vote. Rows without a majority are left out. */
export function rowsOfAbusedBots(data: DataFolder, file: string): TrainingRow[] {
  return data.table(`convabuse/${file}.csv`).flatMap((row) => {
    const votes = (column: RegExp) =>
      Object.entries(row).filter(([name, value]) => column.test(name) && value === '1').length
    const abusive = votes(/is_abuse\.-[123]/)
    const fine = votes(/is_abuse\.(?:0|1)$/)
    const text = row['user'] ?? ''
    if (text === '' || (abusive > 0 && abusive <= fine)) return []
    if (abusive <= fine) return [toRow(text, noCategory)]
    const isHate = votes(/(?:racist|homophobic|transphobic|sexist|ableist)$/) >= 2
    const labels: Labels = { harassment: 1, illicit: 0, 'self-harm': 0 }
    return [toRow(text, isHate ? { ...labels, hate: 1 } : labels)]
  })
}

const cleanedShare = 0.5

/** Toxic comments, and some of them again without their toxic part, which teaches what the toxic part is. */
export function rowsOfToxicSpans(data: DataFolder, random: Random): TrainingRow[] {
  const rows = ['tsd_train', 'tsd_test'].flatMap((file) => data.table(`toxic-spans/${file}.csv`))
  return rows.flatMap(({ text = '', spans = '[]' }) => {
    const toxic = new Set(JSON.parse(spans) as number[])
    if (toxic.size === 0) return []
    const comment = toRow(text, { harassment: 1 }, 0.7)
    if (random() >= cleanedShare) return [comment]
    const cleaned = text
      .split('')
      .filter((_, index) => !toxic.has(index))
      .join('')
    return [comment, toRow(cleaned, { harassment: 0, illicit: 0, 'self-harm': 0 }, 0.5)]
  })
}

export function rowsOfComments(data: DataFolder): TrainingRow[] {
  const rows = data.table('surge-toxicity/toxicity_en.csv')
  return rows.map(({ text = '', is_toxic: verdict }) =>
    toRow(text, verdict === 'Toxic' ? { harassment: 1 } : noCategory),
  )
}

/** Slurs, each a row of its own at a low weight. */
export function rowsOfSlurs(data: DataFolder): TrainingRow[] {
  const slurs = /racial|ethnic|sexual orientation|religious|mental|physical disab/
  return data
    .table('surge-profanity/profanity_en.csv')
    .filter((row) => slurs.test(`${row['category_1']}|${row['category_2']}`))
    .map(({ text = '' }) => toRow(text, { hate: 1 }, 0.3))
}
