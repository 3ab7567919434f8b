import type { QueryClient } from '@tanstack/react-query'
import { useSyncExternalStore } from 'react'

import { onSignedOut } from '#api/call.ts'

import { meQuery, watchMs } from './me.ts'

/** `ended`: the person had signed in, and the session has ended since. */
export type SessionState = 'starting' | 'open' | 'none' | 'ended'

let state: SessionState = 'starting'
const listeners = new Set<() => void>()
const channel = new BroadcastChannel('gatehouse-session')

/** Tells the other pages of this browser that the session has ended. */
export const tellOthers = () => channel.postMessage('signed out')

export const beginSession = () => setState('open')

function setState(next: SessionState) {
  if (state === next) return
  state = next
  for (const listener of listeners) listener()
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useSessionState = () => useSyncExternalStore(subscribe, () => state)

/** A person who does nothing for so long is not watched over any more: the session may then end for want of requests. */
const attentiveMs = 300_000

/**
 * Follows the session from the first answer on. While the page is seen and used it asks every ten seconds whether the session
 * goes on; other pages of the browser tell it at once.
 */
export function followSession(queries: QueryClient) {
  const end = () => {
    setState(state === 'open' || state === 'ended' ? 'ended' : 'none')
    // Nothing of the organization stays in the page.
    queries.clear()
  }
  onSignedOut(end)
  channel.addEventListener('message', end)
  watch(queries)
}

function watch(queries: QueryClient) {
  let usedAt = Date.now()
  const isAttended = () =>
    state === 'open' && document.visibilityState === 'visible' && Date.now() - usedAt < attentiveMs
  const ask = () => queries.fetchQuery({ ...meQuery, staleTime: watchMs / 2 }).catch(() => {})
  const note = () => {
    const wasAttended = isAttended()
    usedAt = Date.now()
    if (!wasAttended && isAttended()) void ask()
  }
  for (const type of ['pointerdown', 'keydown', 'visibilitychange', 'pageshow']) {
    addEventListener(type, note, { capture: true, passive: true })
  }
  setInterval(() => {
    if (isAttended()) void ask()
  }, watchMs)
}
