import { deferStop } from '../defer-stop.ts'
import { startChild } from './child.ts'
import { startGatehouse } from './gatehouse.ts'
import { startNginx } from './nginx.ts'
import { startPortkey } from './portkey.ts'
import { type Target, Unavailable } from './target.ts'

/** Starts the upstream of all targets, in a process of its own. */
export async function startUpstream(): Promise<Target> {
  const file = import.meta.resolve('@gatehouse/tools/scripted-upstream/main')
  const { url, pid, stop } = await startChild(new URL(file))
  return { name: 'upstream alone', url, headers: {}, keys: [], pids: [pid], stop }
}

async function startBareProxy(upstream: string): Promise<Target> {
  const file = new URL('bare-proxy.ts', import.meta.url)
  const { url, pid, stop } = await startChild(file, { UPSTREAM: upstream })
  return { name: 'bare Node proxy', url, headers: {}, keys: [], pids: [pid], stop }
}

/** Starts every target in front of one upstream. A target that cannot be installed is reported and left out. */
export async function startTargets(
  upstream: Target,
  scratch: string,
  cleanup: AsyncDisposableStack,
): Promise<Target[]> {
  const starts = [
    () => startBareProxy(upstream.url),
    () => startNginx(upstream.url, scratch),
    () => startGatehouse(upstream.url),
    () => startPortkey(upstream.url, scratch),
  ]
  const targets: Target[] = [upstream]
  for (const start of starts) {
    try {
      targets.push(await deferStop(await start(), cleanup))
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      console.log(`Left out: ${error.message}`)
    }
  }
  return targets
}
