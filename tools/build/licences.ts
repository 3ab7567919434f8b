import { readdir, readFile } from 'node:fs/promises'
import { join, sep } from 'node:path'

type BundledPackage = {
  folder: string
  name: string
  version: string
  license: string
  owner: string
}

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

type Author = string | { name: string } | undefined

async function readPackage(folder: string): Promise<BundledPackage> {
  const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    name: string
    version: string
    license?: string
    author?: Author
  }
  const { name, version, license = 'see below', author } = manifest
  const owner = typeof author === 'string' ? author : (author?.name ?? `the authors of ${name}`)
  return { folder, name, version, license, owner }
}

async function describe(title: string, found: BundledPackage): Promise<string> {
  const { folder, license, owner } = found
  const names = (await readdir(folder)).filter((name) => licenceName.test(name)).toSorted()
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  if (texts.length === 0) texts.push(textOf(title, license, owner))
  return [`== ${title} (${license})`, ...texts.map((text) => text.trim()), ''].join('\n\n')
}

/** Some packages name their licence without its text. The licence asks us to include it when we distribute them. */
function textOf(title: string, license: string, owner: string): string {
  if (license !== 'MIT') throw new Error(`${title} has no text of its licence, ${license}.`)
  return `Copyright (c) ${owner}\n\n${mit}`
}

const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to
use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the
Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE
FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`
