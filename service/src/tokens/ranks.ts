import { readFile } from 'node:fs/promises'

import { findRankFile } from '#platform/assets.ts'

import { unpackRankTable } from './packed-ranks.ts'
import { createRankTable, type RankTable } from './rank-table.ts'

export const encodings = ['o200k', 'cl100k'] as const
export type Encoding = (typeof encodings)[number]

/** The published ranks, from which the build makes tables. */
const published = {
  o200k: () => import('js-tiktoken/ranks/o200k_base'),
  cl100k: () => import('js-tiktoken/ranks/cl100k_base'),
} as const satisfies Record<Encoding, () => Promise<{ default: { bpe_ranks: string } }>>

const loaded = new Map<Encoding, Promise<RankTable>>()

/** Loads the ranks of an encoding, once per process: threads get them from the main thread. */
export function loadRanks(encoding: Encoding): Promise<RankTable> {
  const known = loaded.get(encoding) ?? readRanks(encoding)
  loaded.set(encoding, known)
  return known
}

/** Reading a table takes a few milliseconds; computing it, where the sources run, more than a hundred. */
async function readRanks(encoding: Encoding): Promise<RankTable> {
  const file = findRankFile(encoding)
  return file ? unpackRankTable(await readFile(file)) : computeRanks(encoding)
}

/** The format of the package: `! <first rank> <token> <token>…`, tokens in base64, with consecutive ranks. */
async function computeRanks(encoding: Encoding): Promise<RankTable> {
  const { default: file } = await published[encoding]()
  const start = '! 0 '
  if (!file.bpe_ranks.startsWith(start) || file.bpe_ranks.includes('\n')) {
    throw new Error(`The ranks of ${encoding} have another format than expected.`)
  }
  return createRankTable(file.bpe_ranks.slice(start.length))
}
