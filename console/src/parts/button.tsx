import type { ComponentProps } from 'react'

type ButtonProps = ComponentProps<'button'> & {
  kind?: 'primary' | 'danger' | 'plain' | 'quiet'
  /** What the button does is under way: it cannot be pressed again. */
  isBusy?: boolean
}

export function Button({ kind = 'plain', isBusy = false, className = '', ...rest }: ButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${kind} ${className}`}
      aria-busy={isBusy || undefined}
      disabled={isBusy || rest.disabled === true}
    />
  )
}
