import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'

import { buildProgram } from './build/build-program.ts'
import { listFiles } from './build/list-files.ts'
import { readOptions, refuse } from './help/read-options.ts'
import { repositoryRoot as root } from './source-files.ts'

function readBuildOptions() {
  const { values } = readOptions('build', {
    options: {
      'without-maps': { type: 'boolean', default: false },
      out: { type: 'string', default: join(root, 'dist') },
    },
  })
  return { hasMaps: !values['without-maps'], folder: resolve(values.out) }
}

async function measureBytes(): Promise<number> {
  const names = (await listFiles(folder)).filter((name) => !name.endsWith('.map'))
  const sizes = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}

const { folder, hasMaps } = readBuildOptions()
const found = await readdir(folder).catch((): string[] => [])
if (found.length > 0 && !found.includes('gatehouse.mjs')) {
  refuse('build', `${folder} contains files that are not of a build, and would be removed.`)
}
const startedAt = performance.now()
await buildProgram(folder, { hasMaps })
const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
const megabytes = ((await measureBytes()) / 2 ** 20).toFixed(1)
console.log(`Built ${folder} in ${seconds} s: ${megabytes} MB without source maps.`)
