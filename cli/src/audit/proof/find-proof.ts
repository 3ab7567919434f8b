import { readFile } from 'node:fs/promises'

import { isObject, type JsonObject } from '../canonical.ts'
import { textFrom } from '../encoding.ts'
import { Fault } from '../fault.ts'

/** A proof has one record, which has at most a few megabytes. A larger file is a bundle. */
const proofBytesMax = 32 * 1024 * 1024

export type ProofFile = { text: string; object: JsonObject }

/** The proof that a file holds, in any layout; undefined where it is something else, such as a bundle. */
export async function findProof(path: string, bytes: number): Promise<ProofFile | undefined> {
  if (bytes > proofBytesMax || path.endsWith('.gz')) return undefined
  const text = textFrom(await readFile(path))
  const object = text === undefined ? undefined : parsed(text)
  // A bundle never begins like this, and would be the wrong name for what is there.
  if (object === undefined && /^\s*\{\s*"event"/.test(text ?? ''))
    throw new Fault({ kind: 'proof', seq: null }, { file: path, line: 0 }, 'is damaged or cut off')
  const isProof = isObject(object) && !('format' in object) && marks.some((name) => name in object)
  return isProof && text !== undefined ? { text, object } : undefined
}

/** One of them is enough: a proof that lacks the others is a bad proof. A line of a bundle has a `leaf`, too. */
const marks = ['hashes', 'checkpoint']

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
