import { readBenignTexts } from './benign.ts'
import type { DataFolder } from './data-folder.ts'
import { rowsOfAbusedBots } from './rows-of-posts.ts'

// Texts that measure the model. None of them may be trained on, and nothing may be tuned on them.

export type Labelled = { readonly text: string; readonly isPositive: boolean }

export type HeldOut = {
  readonly benign: readonly string[]
  readonly safeLookingUnsafe: readonly string[]
  readonly unsafeContrasts: readonly string[]
  readonly illicit: readonly string[]
  readonly selfHarm: readonly string[]
  readonly hateCheck: readonly Labelled[]
  readonly abusedBots: readonly Labelled[]
  /** The prompts of the OpenAI set that people labelled for a category: S, H, HR, SH. */
  labelledFor(label: string): Labelled[]
  /** All of the texts, also those that no question is asked about. */
  readonly everyText: readonly string[]
}

export function readHeldOut(data: DataFolder): HeldOut {
  const xstest = data.table('xstest/xstest_prompts.csv')
  const simple = data.table('simplesafetytests/sst.csv')
  const strong = data.table('harm-prompts/strongreject.csv')
  const isSelfHarm = (row: Record<string, string>) => row['harm_area']?.includes('Suicide') === true
  const isCrime = (row: Record<string, string>) =>
    /Illegal|Non-violent|Violence/.test(row['category'] ?? '')
  const textsOf = (rows: Record<string, string>[], column: string) =>
    rows.map((row) => row[column] ?? '')
  const samples = readSamples(data)
  const benign = readBenignTexts(data).heldOut
  const hateCheck = data.table('hatecheck/test_suite_cases.csv').map((row) => ({
    text: row['test_case'] ?? '',
    isPositive: row['label_gold'] === 'hateful',
  }))
  const abusedBots = rowsOfAbusedBots(data, 'test').map(({ text, labels }) => ({
    text,
    isPositive: labels.harassment === 1,
  }))
  return {
    benign,
    safeLookingUnsafe: textsOf(
      xstest.filter((row) => row['label'] === 'safe'),
      'prompt',
    ),
    unsafeContrasts: textsOf(
      xstest.filter((row) => row['label'] !== 'safe'),
      'prompt',
    ),
    illicit: [
      ...textsOf(strong.filter(isCrime), 'forbidden_prompt'),
      ...textsOf(
        simple.filter((row) => !isSelfHarm(row)),
        'prompts_final',
      ),
    ],
    selfHarm: textsOf(simple.filter(isSelfHarm), 'prompts_final'),
    hateCheck,
    abusedBots,
    labelledFor: createLabelReader(samples),
    everyText: [
      ...benign,
      ...textsOf(xstest, 'prompt'),
      ...textsOf(simple, 'prompts_final'),
      ...textsOf(strong, 'forbidden_prompt'),
      ...[...hateCheck, ...abusedBots].map(({ text }) => text),
      ...samples.flatMap(({ text }) => text ?? []),
    ],
  }
}

type Sample = { text?: string; labels: Record<string, 0 | 1> }

function readSamples(data: DataFolder): Sample[] {
  const lines = data.lines('openai-moderation-1680/samples-1680.redacted.jsonl')
  return lines.map((line) => JSON.parse(line) as Sample)
}

const createLabelReader =
  (samples: readonly Sample[]) =>
  (label: string): Labelled[] =>
    samples.flatMap(({ text, labels }) => {
      const value = labels[label]
      return text === undefined || value === undefined ? [] : [{ text, isPositive: value === 1 }]
    })
