import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import { deferStop } from '../defer-stop.ts'
import type { OwnServers } from '../servers/own-servers.ts'
import { startChild } from '../targets/child.ts'
import { startGatehouse } from '../targets/gatehouse.ts'
import type { Target } from '../targets/target.ts'

type Options = {
  upstream: Target
  servers: OwnServers
  folder: string
  cleanup: AsyncDisposableStack
}

/** Two further Gatehouses that differ from the usual one only in what scores texts. */
export async function startModerated(options: Options) {
  const { remote, countScored } = await startRemote(options, 0)
  return {
    local: await startWith(options, 'local', { accept_local_only: true }),
    remote,
    countScored,
  }
}

/** A Gatehouse whose texts are scored by a server that takes so long for each question. */
export async function startRemote(options: Options, delayMs: number) {
  const double = await deferStop(
    await startChild(new URL('scorer-double.ts', import.meta.url), { DELAY_MS: String(delayMs) }),
    options.cleanup,
  )
  const openai = {
    name: 'remote',
    adapter: 'openai',
    base_url: double.url,
    model: 'omni-moderation-latest',
    deadline_ms: 10_000,
  }
  const name = delayMs > 0 ? `remote-${delayMs}-ms` : 'remote'
  return {
    remote: await startWith(options, name, { scorers: [openai] }),
    /** How many texts the remote scorer has scored. */
    async countScored(): Promise<number> {
      return ((await (await fetch(double.url)).json()) as { scored: number }).scored
    },
  }
}

async function startWith(options: Options, name: string, moderation: object) {
  const { upstream, servers, folder, cleanup } = options
  const file = join(folder, `moderation-${name}.json`)
  await writeFile(file, JSON.stringify(moderation))
  const environment = { MODERATION_FILE: file }
  const usual = { upstream: upstream.url, servers, hasManyStreams: true }
  const gatehouse = await deferStop(await startGatehouse({ ...usual, environment }), cleanup)
  return { ...gatehouse, name: `Gatehouse, ${name} scorer` }
}
