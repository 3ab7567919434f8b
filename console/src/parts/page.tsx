import { type ReactNode, useEffect } from 'react'

type PageProps = {
  title: string
  sub?: ReactNode
  /** Buttons at the end of the title's line. */
  actions?: ReactNode
  children: ReactNode
}

/** A page with its title, which is also that of the window. */
export function Page({ title, sub, actions, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Gatehouse`
  }, [title])
  return (
    <>
      <div className="title">
        <div>
          <h1>{title}</h1>
          {sub !== undefined && <p className="sub">{sub}</p>}
        </div>
        {actions !== undefined && <div className="actions">{actions}</div>}
      </div>
      {children}
    </>
  )
}

type CardProps = { title?: string; actions?: ReactNode; className?: string; children: ReactNode }

export function Card({ title, actions, className = '', children }: CardProps) {
  return (
    <section className={`card ${className}`}>
      {(title !== undefined || actions !== undefined) && (
        <header>
          <h2>{title}</h2>
          {actions}
        </header>
      )}
      {children}
    </section>
  )
}
