import type { ReactNode } from 'react'

export type ChipKind = 'good' | 'waiting' | 'bad' | 'calm'

/** A state in a word; its colour says nothing that the word does not. */
export function Chip({ kind, children }: { kind: ChipKind; children: ReactNode }) {
  return <span className={`chip ${kind}`}>{children}</span>
}
