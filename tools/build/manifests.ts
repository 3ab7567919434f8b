import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { parse } from 'yaml'

import { repositoryRoot as root } from '../source-files.ts'

const readText = (path: string) => readFile(join(root, path), 'utf8')

/** The manifest of the package that is published. It needs no other package, and searches patterns faster with one. */
export async function describePackage(): Promise<string> {
  const manifest = JSON.parse(await readText('program/package.json')) as Record<string, unknown>
  const { catalog } = parse(await readText('pnpm-workspace.yaml')) as {
    catalog: Record<string, string>
  }
  const { name, version, description, license, type, engines } = manifest
  return printJson({
    name,
    version,
    description,
    license,
    type,
    bin: { gatehouse: './gatehouse.mjs' },
    // Without source maps: they name sources that the package does not have.
    files: [
      '*.mjs',
      'assets',
      'console',
      'migrations',
      'ranks',
      'release.json',
      'NOTICES.md',
      'LICENSES-OF-PACKAGES.txt',
    ],
    // Not an optional dependency: npm would run its installation, which fetches what somebody else has compiled.
    peerDependencies: { re2: catalog['re2'] },
    peerDependenciesMeta: { re2: { optional: true } },
    engines,
  })
}

/** What `gatehouse --version` says. */
export async function describeRelease(): Promise<string> {
  const migrations = await readdir(join(root, 'service/migrations'))
  const newest =
    migrations
      .filter((name) => name.endsWith('.sql'))
      .toSorted()
      .at(-1) ?? ''
  return printJson({ commit: await findCommit(), migration: newest.replace('.sql', '') })
}

/** The build of an image has no repository, and gets the commit in a variable. */
async function findCommit(): Promise<string> {
  const given = process.env['GATEHOUSE_COMMIT']
  if (given) return given
  const git = async (...args: string[]) =>
    (await promisify(execFile)('git', args, { cwd: root })).stdout.trim()
  try {
    const commit = await git('rev-parse', 'HEAD')
    const changes = await git('status', '--porcelain', '--untracked-files=no')
    return changes === '' ? commit : `${commit}, with changes`
  } catch {
    return 'unknown'
  }
}

const printJson = (value: object) => `${JSON.stringify(value, null, 2)}\n`
