import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import type { ScriptError } from '@gatehouse/tools/scripted-upstream/script'
import type { HangUp } from '@gatehouse/tools/scripted-upstream/state'

/** What a scripted upstream has seen. */
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

/** It forgets everything, and works again. */
export const resetUpstream = (upstreamUrl: string) => control(upstreamUrl, 'reset')

/** It fails every call, until it is reset. */
export const failAlways = (upstreamUrl: string, error: ScriptError) =>
  control(upstreamUrl, 'mode', error)

/** A scripted upstream in a process of its own, which does not wait for this one. */
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
