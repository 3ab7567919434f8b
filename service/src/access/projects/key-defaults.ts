import type { KeyDefaults } from '@gatehouse/contract/project'

import { isSameBudget } from '#access/limit-overrides/own-budget.ts'

// What a project prescribes for the keys that its members make for themselves, which stands in its row.

type DefaultsRow = { key_defaults: unknown }

/** Only what the contract has checked is stored. */
export const presentKeyDefaults = ({ key_defaults }: DefaultsRow) =>
  key_defaults as KeyDefaults | null

/** Absent keeps them, null removes them, and so does an edit that prescribes nothing. */
export function editKeyDefaults(row: DefaultsRow, edit: KeyDefaults | null | undefined) {
  if (edit === undefined) return presentKeyDefaults(row)
  return edit?.expires_in_seconds || edit?.monthly_budget ? edit : null
}

export const areSameKeyDefaults = (one: KeyDefaults | null, other: KeyDefaults | null): boolean =>
  (one?.expires_in_seconds ?? null) === (other?.expires_in_seconds ?? null) &&
  isSameBudget(one?.monthly_budget ?? null, other?.monthly_budget ?? null)
