import type { ReactNode } from 'react'

import { Problem } from '#api/problem.ts'

import { Button } from './button.tsx'

/** As high as what is coming, so that nothing jumps when it is there. */
export function Loading({ rows = 6 }: { rows?: number }) {
  return (
    <div className="loading" role="status">
      <span className="visually-hidden">Loading</span>
      {Array.from({ length: rows }, (_, index) => (
        <i key={index} />
      ))}
    </div>
  )
}

type EmptyProps = { title: string; children?: ReactNode; action?: ReactNode }

/** What is said where there is nothing yet, and what to do about it. */
export function Empty({ title, children, action }: EmptyProps) {
  return (
    <div className="empty">
      <p className="strong">{title}</p>
      {children !== undefined && <p>{children}</p>}
      {action}
    </div>
  )
}

const sentenceOf = (error: Error) =>
  error instanceof Problem ? error.message : 'This page has failed. Load it again.'

/** What went wrong with a change, read out when it appears. */
export function Warning({ error }: { error: Error }) {
  return (
    <p className="warning" role="alert">
      {sentenceOf(error)}
      <RequestId error={error} />
    </p>
  )
}

/** What went wrong with reading, in place of what should be there. */
export function Failed({ error, onRetry }: { error: Error; onRetry: () => void }) {
  return (
    <div className="empty" role="alert">
      <p className="strong">This could not be read</p>
      <p>
        {sentenceOf(error)}
        <RequestId error={error} />
      </p>
      <Button onClick={onRetry}>Try again</Button>
    </div>
  )
}

/** What the operator needs to find the request in the log. */
function RequestId({ error }: { error: Error }) {
  if (!(error instanceof Problem) || error.requestId === null || error.status < 500) return null
  return <span className="request-id"> Request {error.requestId}</span>
}
