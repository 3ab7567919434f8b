import type { OwnServers } from '../servers/own-servers.ts'
import type { Target } from '../targets/target.ts'

// Starts the Gatehouse of one working copy with that copy's own tools, in a process of its own: two copies in one process would
// share what the tools keep in its environment, such as which build to start.

/** What a copy's `bench/targets/gatehouse.ts` has had since the first commit that can be compared with. */
type Module = {
  startGatehouse(options: {
    upstream: string
    servers: OwnServers
    hasManyStreams: boolean
  }): Promise<Target>
}
export type HostJob = { root: string; upstream: string; servers: Record<Server, { url: string }> }
type Server = 'postgres' | 'redis'
export type Hosted = Pick<Target, 'url' | 'headers' | 'keys' | 'pids' | 'workerPid'>
export type HostAnswer = { hosted: Hosted } | { caveat: string | undefined } | { problem: string }

let gatehouse: Target | undefined

async function start({ root, upstream, servers }: HostJob): Promise<HostAnswer> {
  const file = `${root}/bench/targets/gatehouse.ts`
  const { startGatehouse } = (await import(file)) as Module
  // Only the addresses of the servers are used.
  const given = servers as unknown as OwnServers
  gatehouse = await startGatehouse({ upstream, servers: given, hasManyStreams: true })
  const { url, headers, keys, pids, workerPid } = gatehouse
  return { hosted: { url, headers, keys, pids, ...(workerPid !== undefined && { workerPid }) } }
}

const answer = async (message: 'caveat' | HostJob): Promise<HostAnswer> =>
  message === 'caveat' ? { caveat: await gatehouse?.caveat?.() } : start(message)

async function end() {
  await gatehouse?.stop()
  process.exit(0)
}

process.on('message', (message) => {
  answer(message as 'caveat' | HostJob).then(
    (answered) => process.send?.(answered),
    (error: unknown) => process.send?.({ problem: String(error) }),
  )
})
// Its parent stops it; a Ctrl-C in a terminal, which reaches both, must not end it first.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => void end()).on('disconnect', () => void end())
process.send?.('ready')
