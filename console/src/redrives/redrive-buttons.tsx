/** What can be done with a redrive: pause, resume, another rate, cancel; what is left of an ended one can be planned again. */
import { Group } from '@mantine/core'
import { type RefObject, useLayoutEffect, useRef, useState } from 'react'
import { isActive, isOver, type Redrive } from '../api/redrive-types.ts'
import { ActButton } from '../kit/act-button.tsx'
import { cancelRedrive, pauseRedrive, resumeRedrive, setRedriveRate } from './calls.ts'
import { CancelDialog } from './cancel-dialog.tsx'
import { PlanAgain } from './plan-again.tsx'
import { RateDialog } from './rate-dialog.tsx'
import { titleOf } from './redrive-words.ts'
import { useSteering } from './use-steering.ts'

/** `isSlim`: only what halts it, and lets it go on. */
export function RedriveButtons({
  redrive,
  isSlim = false,
}: {
  readonly redrive: Redrive
  readonly isSlim?: boolean
}) {
  const place = useRef<HTMLFieldSetElement>(null)
  const { remaining, failed, skipped } = redrive.counts
  return (
    <fieldset ref={place} className="redrive-buttons" aria-label={titleOf(redrive)} tabIndex={-1}>
      {isActive(redrive) && <Steer redrive={redrive} place={place} isSlim={isSlim} />}
      {isOver(redrive) && remaining + failed + skipped > 0 && <PlanAgain redrive={redrive} />}
    </fieldset>
  )
}

interface SteerProps {
  readonly redrive: Redrive
  /** Takes the focus when these buttons are gone, because it ended while they had it. */
  readonly place: RefObject<HTMLElement | null>
  readonly isSlim: boolean
}

function Steer({ redrive, place, isSlim }: SteerProps) {
  const { id, state } = redrive
  const { steer, isBusy } = useSteering(id)
  const [asked, setAsked] = useState<'rate' | 'cancel' | null>(null)
  const close = () => setAsked(null)
  useLayoutEffect(
    () => () => {
      if (place.current?.contains(document.activeElement)) place.current.focus({ preventScroll: true })
    },
    [place],
  )
  return (
    <Group gap="xs">
      {state === 'paused' ? (
        <ActButton
          size="compact-sm"
          needs="operator"
          loading={isBusy}
          onClick={() => steer('Not resumed', () => resumeRedrive(id))}
        >
          Resume
        </ActButton>
      ) : (
        <ActButton
          size="compact-sm"
          variant="default"
          needs="operator"
          loading={isBusy}
          onClick={() => steer('Not paused', () => pauseRedrive(id))}
        >
          Pause
        </ActButton>
      )}
      {!isSlim && (
        <>
          <ActButton size="compact-sm" variant="default" needs="operator" onClick={() => setAsked('rate')}>
            Change rate…
          </ActButton>
          <ActButton size="compact-sm" variant="default" needs="operator" onClick={() => setAsked('cancel')}>
            Cancel…
          </ActButton>
        </>
      )}
      <RateDialog
        redrive={asked === 'rate' ? redrive : null}
        close={close}
        set={(rate) => steer('Rate not changed', () => setRedriveRate(id, rate))}
      />
      <CancelDialog
        redrive={asked === 'cancel' ? redrive : null}
        close={close}
        cancel={(reason) => steer('Not cancelled', () => cancelRedrive(id, reason))}
      />
    </Group>
  )
}
