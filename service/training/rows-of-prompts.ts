import type { DataFolder } from './data-folder.ts'
import { type Labels, noCategory, toRow, type TrainingRow } from './training-row.ts'

// Prompts that were written to make a model do harm.

const illicit: Labels = { illicit: 1, 'self-harm': 0 }

export function rowsOfHazards(data: DataFolder): TrainingRow[] {
  const labelsOf = (hazard: string): Labels => {
    if (hazard === 'hte') return { hate: 1, illicit: 0, 'self-harm': 0 }
    if (/^(?:vcr|ncr|iwp|src)$/.test(hazard)) return illicit
    // Whether a prompt about self-harm asks for something illicit is not labelled.
    if (hazard === 'ssh') return { harassment: 0, hate: 0, 'self-harm': 1 }
    if (hazard === 'sxc_prn' || hazard.startsWith('spc')) return noCategory
    return { hate: 0, 'self-harm': 0 }
  }
  return data
    .table('ailuminate-demo/demo_en_us.csv')
    .map(({ hazard = '', prompt_text: text = '' }) => toRow(text, labelsOf(hazard)))
}

export function rowsOfHarmBench(data: DataFolder): TrainingRow[] {
  const rows = data.table('harm-prompts/harmbench_text_all.csv')
  return rows.flatMap(({ SemanticCategory: kind = '', Behavior: text = '' }) => {
    if (/chem|illegal|cyber/.test(kind)) return [toRow(text, illicit)]
    if (kind.includes('harass')) return [toRow(text, { harassment: 1, illicit: 0 })]
    return kind === 'copyright' ? [toRow(text, noCategory)] : []
  })
}

export function rowsOfAttacks(data: DataFolder): TrainingRow[] {
  const prompts = ['advbench', 'tdc2023'].flatMap((file) =>
    data.table(`harm-prompts/${file}.csv`).map((row) => row['Behavior'] ?? ''),
  )
  const instructions = data.lines('harm-prompts/malicious_instruct.txt')
  return [...prompts, ...instructions].map((text) => toRow(text, { illicit: 1 }, 0.7))
}

type Questions = Record<string, Record<string, readonly string[]>>

export function rowsOfQuestions(data: DataFolder): TrainingRow[] {
  const labelsOf = (category: string, subcategory: string): Labels => {
    if (subcategory.includes('Self-harm')) return { ...noCategory, 'self-harm': 1 }
    if (/Racial|Religious/.test(subcategory)) return { hate: 1, 'self-harm': 0 }
    if (subcategory.includes('Cyberbully')) return { harassment: 1 }
    if (/Adult Content|Political|Tailored/.test(category)) return noCategory
    return illicit
  }
  const categories = Object.entries(data.json('catqa/catqa_english.json') as Questions)
  return categories.flatMap(([category, subcategories]) =>
    Object.entries(subcategories).flatMap(([subcategory, questions]) =>
      questions.map((text) => toRow(text, labelsOf(category, subcategory))),
    ),
  )
}
