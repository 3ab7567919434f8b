import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import type { ScriptError } from '@gatehouse/tools/scripted-upstream/script'
import type { HangUp } from '@gatehouse/tools/scripted-upstream/state'

/** The state that a scripted upstream reports. */
export type UpstreamState = {
  requests: number
  open: number
  hungUp: HangUp[]
  lastRequests: { path: string; body: Record<string, unknown> | null }[]
}

export async function stateOf(upstreamUrl: string): Promise<UpstreamState> {
  const answer = await fetch(`${upstreamUrl}/control/state`)
  return (await answer.json()) as UpstreamState
}

async function control(upstreamUrl: string, what: string, body?: object) {
  const answer = await fetch(`${upstreamUrl}/control/${what}`, {
    method: 'POST',
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(await answer.text())
}

/** Clears its state and ends its failures. */
export const resetUpstream = (upstreamUrl: string) => control(upstreamUrl, 'reset')

/** Makes every call fail until the reset. */
export const failAlways = (upstreamUrl: string, error: ScriptError) =>
  control(upstreamUrl, 'mode', error)

/** Starts a scripted upstream in a separate process, so that a busy test does not slow it down. */
export async function forkUpstream() {
  const child = fork(
    fileURLToPath(import.meta.resolve('@gatehouse/tools/scripted-upstream/main')),
    { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] },
  )
  const url = await new Promise<string>((resolve, reject) => {
    child.once('message', (message) => resolve(message as string))
    child.once('exit', (code) => reject(new Error(`The upstream ended with ${code}.`)))
  })
  return { url, stop: () => void child.kill() }
}
