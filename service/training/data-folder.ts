import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { parseCsv } from './csv.ts'

const besideRepository = new URL('../../../shared/data/moderation', import.meta.url)

/** Where the labelled texts are expected, whether or not they are there. They are not part of this repository. */
export function dataPath(): string {
  return process.env['MODERATION_DATA'] || fileURLToPath(besideRepository)
}

/** Why nothing can be trained or evaluated on this machine; undefined if it can. */
export function whyNoData(path = dataPath()): string | undefined {
  if (existsSync(join(path, 'benign-instructions/benign.jsonl'))) return undefined
  return `The labelled texts are not in ${path}. Set MODERATION_DATA to their folder; docs/moderation-model-card.md lists them.`
}

export type DataFolder = {
  table(file: string): Record<string, string>[]
  lines(file: string): string[]
  json(file: string): unknown
}

export function openDataFolder(path: string): DataFolder {
  const read = (file: string) => readFileSync(join(path, file), 'utf8')
  return {
    table: (file) => parseCsv(read(file)),
    lines: (file) => read(file).split('\n').filter(Boolean),
    json: (file) => JSON.parse(read(file)),
  }
}
