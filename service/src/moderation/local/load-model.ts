import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

import { assetFile } from '#platform/assets.ts'

import { decodeModel, type Model } from './model.ts'

/** The weights, and the digest of their bytes; `./dev moderation train` writes both. */
export const modelFile = assetFile('model.bin')
export const manifestFile = assetFile('model.json')

export type Manifest = { readonly bytes: number; readonly sha256: string }

export function describeModel(bytes: Buffer): Manifest {
  return { bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') }
}

/** A damaged or replaced file would silently give wrong scores. */
export function checkModel(bytes: Buffer, manifest: Manifest): Model {
  const found = describeModel(bytes)
  if (found.bytes !== manifest.bytes || found.sha256 !== manifest.sha256) {
    throw new Error(
      `The model of the local scorer is not the one of this release: it has ${found.bytes} bytes and the SHA-256 ${found.sha256}.`,
    )
  }
  return decodeModel(bytes)
}

let loaded: Model | undefined

/** Reads the model at first use, once per process. */
export function loadModel(): Model {
  loaded ??= checkModel(
    readFileSync(modelFile),
    JSON.parse(readFileSync(manifestFile, 'utf8')) as Manifest,
  )
  return loaded
}
