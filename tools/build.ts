import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { buildProgram } from './build/build-program.ts'
import { repositoryRoot as root } from './source-files.ts'

const usage = `Usage: ./dev build [--without-maps] [--out folder]

Builds what ships: the command gatehouse.mjs with all its code, migrations and assets, which needs Node 24 and nothing else.
  --without-maps  no source maps, as in the image
  --out folder    another folder than dist/ of the repository; what is in it is removed

  ./dev build && node dist/gatehouse.mjs --version
  cd dist && npm pack        the package, with everything in it
`

function readOptions() {
  const options = {
    'without-maps': { type: 'boolean', default: false },
    out: { type: 'string', default: join(root, 'dist') },
    help: { type: 'boolean', short: 'h' },
  } as const
  return parseArgs({ options }).values
}

async function measure(folder: string) {
  const files = await readdir(folder, { recursive: true })
  const sizes = await Promise.all(
    files
      .filter((name) => !name.endsWith('.map'))
      .map(async (name) => {
        const found = await stat(join(folder, name))
        return found.isFile() ? found.size : 0
      }),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

async function run() {
  const { out, help, 'without-maps': isWithoutMaps } = readOptions()
  if (help) return void process.stdout.write(usage)
  const startedAt = performance.now()
  await buildProgram(out, { hasMaps: !isWithoutMaps })
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const megabytes = ((await measure(out)) / 2 ** 20).toFixed(1)
  console.log(`Built ${out} in ${seconds} s: ${megabytes} MB without source maps.`)
  return undefined
}

try {
  await run()
} catch (error) {
  console.error(`build: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
