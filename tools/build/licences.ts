import { readdir, readFile } from 'node:fs/promises'
import { join, sep } from 'node:path'

type BundledPackage = { folder: string; name: string; version: string; license: string }

const modulesFolder = `${sep}node_modules${sep}`
/** Files in which packages state their terms, and what Apache's licence asks to keep. */
const licenceName = /^(licen[cs]e|notice|copying)/i

/** The licences of all packages that were bundled, as one text. */
export async function describeLicences(modules: readonly string[]): Promise<string> {
  const packages = new Map<string, BundledPackage>()
  for (const folder of new Set(modules.map(folderOf))) {
    if (folder === undefined) continue
    const found = await readPackage(folder)
    packages.set(`${found.name} ${found.version}`, found)
  }
  const sorted = [...packages].toSorted(([left], [right]) => (left < right ? -1 : 1))
  const texts = await Promise.all(sorted.map(([title, found]) => describe(title, found)))
  return `The program contains these packages.\n\n${texts.join('\n')}`
}

/** The folder of the package that a module belongs to; undefined for our own. */
function folderOf(module: string): string | undefined {
  const at = module.lastIndexOf(modulesFolder)
  if (at < 0) return undefined
  const [scope = '', name = ''] = module.slice(at + modulesFolder.length).split(sep)
  const found = scope.startsWith('@') ? join(scope, name) : scope
  return join(module.slice(0, at), modulesFolder, found).replace(/^.*\0/, '')
}

async function readPackage(folder: string): Promise<BundledPackage> {
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    name: string
    version: string
    license?: string
  }
  const { name, version, license = 'see below' } = manifest
  return { folder, name, version, license }
}

async function describe(title: string, { folder, license }: BundledPackage): Promise<string> {
  const names = (await readdir(folder)).filter((name) => licenceName.test(name)).toSorted()
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  return [`== ${title} (${license})`, ...texts.map((text) => text.trim()), ''].join('\n\n')
}
