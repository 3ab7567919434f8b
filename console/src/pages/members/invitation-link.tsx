import { Button } from '#parts/button.tsx'
import { CopyButton } from '#parts/copy-button.tsx'
import { Dialog } from '#parts/dialog.tsx'
import { Time } from '#parts/time.tsx'

type InvitationLinkProps = {
  email: string
  /** Null where the gateway does not know its own address, and makes no links. */
  invitation: { invitation_url: string | null; invitation_expires_at: number | null }
  onClose: () => void
}

/** The only time that the link is shown. No mail is sent: who invites a person passes the link on. */
export function InvitationLink({ email, invitation, onClose }: InvitationLinkProps) {
  const { invitation_url: url, invitation_expires_at: expiresAt } = invitation
  return (
    <Dialog title={`${email} is invited`} onClose={onClose} isKept>
      {url === null ? (
        <p>No mail is sent: tell the person to sign in with this address.</p>
      ) : (
        <>
          <p>
            No mail is sent. Copy the link and send it to the person yourself:{' '}
            <span className="strong">it is shown only here</span>. It works for this address only
            {expiresAt !== null && (
              <>
                , and ends <Time at={expiresAt} />
              </>
            )}
            .
          </p>
          <div className="secret">
            <code aria-label="Invitation link">{url}</code>
            <CopyButton text={url} label="the link" />
          </div>
        </>
      )}
      <div className="foot">
        <Button kind="primary" onClick={onClose}>
          {url === null ? 'Close' : 'I have copied it'}
        </Button>
      </div>
    </Dialog>
  )
}
