import { rolldown, type OutputChunk } from 'rolldown'

import { repositoryRoot } from '../source-files.ts'

/** Not in the bundle: native code, what packages try to load and do without, and ranks, which it has as packed tables. */
const external = ['re2', 'pg-native', /^js-tiktoken\/ranks\//]

/**
 * Bundles programs into a folder, without their assets: one ES module for each program, and modules that they share.
 * Nothing in them depends on where the repository is. Returns the modules that were bundled.
 */
export async function bundle(
  entries: Readonly<Record<string, string>>,
  { folder, hasMaps }: { folder: string; hasMaps: boolean },
): Promise<string[]> {
  await using build = await rolldown({
    cwd: repositoryRoot,
    input: entries,
    platform: 'node',
    external,
    onLog(level, log) {
      // A bundle that was made with doubts is not shipped.
      if (level === 'warn') throw new Error(`The bundler warns: ${log.message}`)
    },
  })
  const { output } = await build.write({
    dir: folder,
    format: 'esm',
    entryFileNames: '[name].mjs',
    // In the same folder as the entries: modules find their assets relative to themselves.
    chunkFileNames: '[name]-[hash].mjs',
    sourcemap: hasMaps,
    sourcemapExcludeSources: true,
  })
  return output
    .filter((file): file is OutputChunk => file.type === 'chunk')
    .flatMap(({ moduleIds }) => moduleIds)
}
