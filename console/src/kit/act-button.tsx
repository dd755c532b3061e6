/**
 * A button for an act. Not allowed, it stays where it is and reachable by keyboard, and says why: a button that is not there, or
 * dead without a word, teaches nobody.
 */
import { Button, type ButtonProps, Loader, Tooltip } from '@mantine/core'
import type { MouseEventHandler, ReactNode } from 'react'
import type { Role } from '../api/types.ts'
import './act-button.css'
import { useRefusal } from './role.tsx'

export interface ActButtonProps extends ButtonProps {
  readonly needs?: Role
  /** Why it cannot be done now, whatever the role; null or left out: it can. */
  readonly refusal?: string | null
  readonly onClick: MouseEventHandler<HTMLButtonElement>
  readonly children: ReactNode
  /** Shown in the tooltip: the key that does the same. */
  readonly hotkey?: string
}

export function ActButton({
  needs = 'viewer',
  refusal = null,
  onClick,
  children,
  hotkey,
  loading = false,
  ...button
}: ActButtonProps) {
  const notAllowed = useRefusal(needs)
  const reason = notAllowed ?? refusal
  return (
    <Tooltip
      label={reason ?? `Key: ${hotkey ?? ''}`}
      disabled={reason === null && hotkey === undefined}
      events={{ hover: true, focus: true, touch: true }}
    >
      <Button
        {...button}
        aria-disabled={reason !== null}
        aria-busy={loading}
        {...(reason === null ? {} : { 'data-disabled': true, 'aria-description': reason })}
        onClick={(event) => {
          if (reason === null && !loading) onClick(event)
          else event.preventDefault()
        }}
      >
        {/* Not Mantine's own way to show this: it disables the button, which takes the focus from it. */}
        {loading ? <span className="act-busy">{children}</span> : children}
        {loading && <Loader size="1em" color="currentColor" className="act-loader" aria-hidden />}
      </Button>
    </Tooltip>
  )
}
