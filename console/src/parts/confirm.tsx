import type { ReactNode } from 'react'

import { FormDialog } from './dialog.tsx'

type ConfirmProps = {
  title: string
  /** What the button does, in a word or two. */
  submit: string
  isBusy: boolean
  error: Error | null
  onClose: () => void
  onConfirm: () => void
  /** What will happen, before it does. */
  children: ReactNode
}

/** Asks once before something that cannot be undone, and says what it does. */
export function Confirm({ onConfirm, ...rest }: ConfirmProps) {
  return <FormDialog {...rest} kind="danger" onSubmit={onConfirm} />
}
