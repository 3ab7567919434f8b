import { useSyncExternalStore } from 'react'

type Toast = { id: number; text: string }

const shownMs = 6000
const shownMax = 3
let toasts: readonly Toast[] = []
let lastId = 0
const listeners = new Set<() => void>()

function set(next: readonly Toast[]) {
  toasts = next
  for (const listener of listeners) listener()
}

/** Says that something was done. What a person has to act on is said where it happened, and stays. */
export function toast(text: string) {
  const id = ++lastId
  set([...toasts, { id, text }].slice(-shownMax))
  setTimeout(() => set(toasts.filter((each) => each.id !== id)), shownMs)
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts)
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  )
}
