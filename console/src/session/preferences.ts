import { useSyncExternalStore } from 'react'

// What a person chooses for this browser. Never anything of the organization.

export const themes = ['system', 'light', 'dark'] as const
type Theme = (typeof themes)[number]
type Preferences = { theme: Theme; hasLetterKeys: boolean }

const place = 'gatehouse-console'
const usual: Preferences = { theme: 'system', hasLetterKeys: true }

function read(): Preferences {
  try {
    const { theme, hasLetterKeys } = JSON.parse(localStorage.getItem(place) ?? '{}') as Partial<
      Record<keyof Preferences, unknown>
    >
    const known = themes.find((each) => each === theme)
    return { theme: known ?? usual.theme, hasLetterKeys: hasLetterKeys !== false }
  } catch {
    // Storage may be switched off: the choice then lasts as long as the page.
    return usual
  }
}

let current = read()
const listeners = new Set<() => void>()

export function setPreferences(changed: Partial<Preferences>) {
  current = { ...current, ...changed }
  try {
    localStorage.setItem(place, JSON.stringify(current))
  } catch {
    // As above.
  }
  applyTheme()
  for (const listener of listeners) listener()
}

const subscribe = (listener: () => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const readPreferences = () => current
export const usePreferences = () => useSyncExternalStore(subscribe, readPreferences)

/** `system` leaves the choice to the style sheet. */
export function applyTheme() {
  const { theme } = current
  if (theme === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme
}
