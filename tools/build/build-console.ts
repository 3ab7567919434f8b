import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

import { build } from 'vite'

import { viteSettings } from '../console/vite-settings.ts'
import { listFiles } from './list-files.ts'

// A program of its own: bundling React for production needs NODE_ENV=production in the whole process.

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** Smaller files are not worth a second copy. */
const compressedFromBytes = 512

const [folder = ''] = process.argv.slice(2)
await rm(folder, { recursive: true, force: true })
await mkdir(folder, { recursive: true })
const modules = await bundleConsole()
const names = (await listFiles(folder)).filter((name) => !name.endsWith('.map'))
const files = await Promise.all(names.map(compress))
await writeFile(join(folder, 'files.json'), `${JSON.stringify(files, null, 2)}\n`)
console.log(JSON.stringify(modules))

/** Returns the modules that were bundled. */
async function bundleConsole(): Promise<string[]> {
  const bundled = new Set<string>()
  await build({
    ...viteSettings,
    mode: 'production',
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: 'es2024',
      sourcemap: false,
      // Browsers of this target know how to load modules ahead, and the helper would need to be trusted.
      modulePreload: { polyfill: false },
      // A file of its own, so that nothing is a data: URL, which the policy would have to allow.
      assetsInlineLimit: 0,
      reportCompressedSize: false,
    },
    plugins: [
      {
        name: 'list-modules',
        buildEnd() {
          for (const id of this.getModuleIds()) bundled.add(id.split('?', 1)[0] ?? id)
        },
      },
    ],
  })
  return [...bundled].toSorted()
}

/** Compresses a file ahead, as well as it can be, and describes it for the service. */
async function compress(path: string) {
  const bytes = await readFile(join(folder, path))
  const type = types[extname(path)]
  if (type === undefined) throw new Error(`The console has a file of an unknown kind: ${path}`)
  if (bytes.length < compressedFromBytes) return { path, type, codings: [] }
  const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
  await writeFile(
    join(folder, `${path}.br`),
    await promisify(brotliCompress)(bytes, { params: quality }),
  )
  await writeFile(join(folder, `${path}.gz`), await promisify(gzip)(bytes, { level: 9 }))
  return { path, type, codings: ['br', 'gzip'] }
}
