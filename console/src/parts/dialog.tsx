import { type ReactNode, useEffect, useId, useRef } from 'react'

import { Button } from './button.tsx'
import { Warning } from './states.tsx'

type DialogProps = {
  title: string
  onClose: () => void
  className?: string
  /** Where a click outside would lose what cannot be had again. */
  isKept?: boolean
  children: ReactNode
}

/**
 * A window over the page, by the browser's own element: it keeps the focus inside, gives it back at the end, and closes with
 * Escape.
 */
export function Dialog({ title, onClose, className = '', isKept = false, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useEffect(() => {
    const dialog = element.current
    const before = document.activeElement
    if (dialog && !dialog.open) dialog.showModal()
    return () => {
      dialog?.close()
      if (before instanceof HTMLElement) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      className={className}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        if (!isKept) onClose()
      }}
      onPointerDown={(event) => {
        if (event.target === element.current && !isKept) onClose()
      }}
    >
      <div className="window">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

type FormDialogProps = {
  title: string
  submit: string
  kind?: 'primary' | 'danger'
  isBusy: boolean
  error: Error | null
  onClose: () => void
  onSubmit: (form: FormData) => void
  children: ReactNode
}

/** A window with a form, what went wrong, and the two buttons. */
export function FormDialog(props: FormDialogProps) {
  const { title, submit, kind = 'primary', isBusy, error, onClose, onSubmit, children } = props
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onSubmit(new FormData(event.currentTarget))
        }}
      >
        {children}
        {error && <Warning error={error} />}
        <div className="foot">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind={kind} isBusy={isBusy}>
            {submit}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
