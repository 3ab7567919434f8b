import { Button } from './button.tsx'

type MoreProps = { shown: number; hasMore: boolean; isBusy: boolean; onMore: () => void }

/** The end of a list that was read in part. */
export function More({ shown, hasMore, isBusy, onMore }: MoreProps) {
  if (!hasMore) return null
  return (
    <p className="more">
      {shown} shown.{' '}
      <Button isBusy={isBusy} onClick={onMore}>
        Show more
      </Button>
    </p>
  )
}
