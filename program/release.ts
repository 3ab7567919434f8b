import { readFileSync } from 'node:fs'

import manifest from './package.json' with { type: 'json' }

/** `migration` is the newest that it has. */
type Release = { commit: string; migration: string }

/** The build writes it beside the program. */
const file = new URL('release.json', import.meta.url)

export function describeRelease(): string {
  const { version } = manifest
  if (import.meta.url.endsWith('.ts')) return `gatehouse ${version} (sources, not built)`
  const { commit, migration } = JSON.parse(readFileSync(file, 'utf8')) as Release
  return `gatehouse ${version} (commit ${commit}, migration ${migration})`
}
