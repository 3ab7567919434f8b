import type { Ranks } from './heap-bpe.ts'

export const encodings = ['o200k', 'cl100k'] as const
export type Encoding = (typeof encodings)[number]

/** The published ranks: several megabytes, loaded when an encoding is first used. */
const published = {
  o200k: () => import('js-tiktoken/ranks/o200k_base'),
  cl100k: () => import('js-tiktoken/ranks/cl100k_base'),
} as const satisfies Record<Encoding, () => Promise<{ default: { bpe_ranks: string } }>>

export async function loadRanks(encoding: Encoding): Promise<Ranks> {
  const { default: file } = await published[encoding]()
  const ranks = new Map<string, number>()
  for (const line of file.bpe_ranks.split('\n')) readLine(line, ranks)
  return ranks
}

/** `! <first rank> <token> <token>…`: tokens in base64, with consecutive ranks. */
function readLine(line: string, ranks: Map<string, number>) {
  const [, firstRank, ...tokens] = line.split(' ')
  const first = Number(firstRank)
  for (const [index, token] of tokens.entries()) {
    ranks.set(Buffer.from(token, 'base64').toString('latin1'), first + index)
  }
}
