import { stopProcess } from '@gatehouse/tools/service-process'

import { deferStop } from '../defer-stop.ts'
import type { OwnServers } from '../servers/own-servers.ts'
import { startChild } from '../targets/child.ts'
import type { Target } from '../targets/target.ts'
import type { HostAnswer, HostJob } from './host.ts'

type Options = { upstream: Target; servers: OwnServers; cleanup: AsyncDisposableStack }
type Variant = { name: string; root: string }

/** The Gatehouse of one working copy, with a database and a part of Redis of its own. */
export async function startVariant(
  { name, root }: Variant,
  { upstream, servers, cleanup }: Options,
): Promise<Target> {
  const environment = { HOME: process.env['HOME'] ?? '' }
  const { child } = await startChild(new URL('host.ts', import.meta.url), environment)
  // It ends when its Gatehouse has, which may take as long as that drains. Killed before, it would leave that behind.
  const host = await deferStop({ stop: () => stopProcess(child) }, cleanup)
  const ask = async (message: 'caveat' | HostJob): Promise<HostAnswer> => {
    const answer = await new Promise<HostAnswer>((resolve) => {
      const end = () => resolve({ problem: 'its process ended' })
      child.once('exit', end)
      child.once('message', (sent) => {
        child.off('exit', end)
        resolve(sent as HostAnswer)
      })
      child.send(message)
    })
    if ('problem' in answer) throw new Error(`${name}: ${answer.problem}`)
    return answer
  }
  const { postgres, redis } = servers
  const given = { postgres: { url: postgres.url }, redis: { url: redis.url } }
  const started = await ask({ root, upstream: upstream.url, servers: given })
  if (!('hosted' in started)) throw new Error(`${name} did not start.`)
  return {
    name,
    ...started.hosted,
    async caveat() {
      const answer = await ask('caveat')
      return 'caveat' in answer ? answer.caveat : undefined
    },
    stop: host.stop,
  }
}
