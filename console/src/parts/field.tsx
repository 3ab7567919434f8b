import { type ReactNode, useId } from 'react'

type FieldProps = {
  label: string
  hint?: ReactNode
  children: (ids: { id: string; 'aria-describedby'?: string }) => ReactNode
}

/** A label, a control and what there is to know about it. */
export function Field({ label, hint, children }: FieldProps) {
  const id = useId()
  const hintId = `${id}-hint`
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children(hint === undefined ? { id } : { id, 'aria-describedby': hintId })}
      {hint !== undefined && (
        <p className="hint" id={hintId}>
          {hint}
        </p>
      )}
    </div>
  )
}

type CheckProps = { name: string; label: ReactNode; hint?: string; value?: string; isOn?: boolean }

export function Check({ name, label, hint, value = 'on', isOn = false }: CheckProps) {
  return (
    <label className="check">
      <input type="checkbox" name={name} value={value} defaultChecked={isOn} />
      <span>
        {label}
        {hint !== undefined && <span className="hint">{hint}</span>}
      </span>
    </label>
  )
}

export const textOf = (form: FormData, name: string): string => {
  const value = form.get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** A number of a form; null where the field is empty. */
export const numberOf = (form: FormData, name: string): number | null => {
  const text = textOf(form, name)
  return text === '' ? null : Number(text)
}
