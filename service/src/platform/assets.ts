import { readFileSync } from 'node:fs'

/** `./dev build` puts all modules into one folder, with the assets beside them. Sources end in `.ts`. */
const isBuilt = !import.meta.url.endsWith('.ts')
/** The folder of the program: `dist/`, or `service/` when it runs from sources. */
const programFolder = new URL(isBuilt ? './' : '../../', import.meta.url)

/** The SQL files of the schema. */
export const migrationsFolder = new URL('migrations/', programFolder)

/** The entry of our worker threads. */
export const threadEntry = new URL(isBuilt ? 'thread.mjs' : 'src/thread.ts', programFolder)

type AssetName =
  | 'limiter.lua'
  | 'quotas.lua'
  | 'model.bin'
  | 'model.json'
  | 'sign-in.css'
  | 'address-form.js'

/** The built console. Sources have none: `./dev console` serves it from its own sources. */
export const consoleFolder = isBuilt ? new URL('console/', programFolder) : undefined

/** A file that the program reads, and that is no code of its own. */
export const assetFile = (name: AssetName): URL => new URL(`assets/${name}`, programFolder)

/** The table of an encoding as the build packs it; undefined when the sources run. */
export const findRankFile = (encoding: string): URL | undefined =>
  isBuilt ? new URL(`ranks/${encoding}.bin`, programFolder) : undefined

export const readTextAsset = (name: AssetName): string => readFileSync(assetFile(name), 'utf8')
