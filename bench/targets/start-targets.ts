import { deferStop } from '../defer-stop.ts'
import { startChild } from './child.ts'
import { type Target, Unavailable } from './target.ts'

/** Starts the upstream of all targets, in a process of its own. */
export async function startUpstream(): Promise<Target> {
  const file = import.meta.resolve('@gatehouse/tools/scripted-upstream/main')
  const { url, pid, stop } = await startChild(new URL(file))
  return { name: 'upstream', url, headers: {}, keys: [], pids: [pid], stop }
}

export async function startBareProxy(upstream: string): Promise<Target> {
  const file = new URL('bare-proxy.ts', import.meta.url)
  const { url, pid, stop } = await startChild(file, { UPSTREAM: upstream })
  return { name: 'bare proxy', url, headers: {}, keys: [], pids: [pid], stop }
}

/** A target that cannot be installed is reported and left out. */
export async function startIfAvailable(
  start: () => Promise<Target>,
  cleanup: AsyncDisposableStack,
): Promise<Target[]> {
  try {
    return [await deferStop(await start(), cleanup)]
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error
    console.log(`Left out: ${error.message}`)
    return []
  }
}
