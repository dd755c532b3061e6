/** Sets another rate for a redrive that is under way. */
import { Button, Group, Modal, NumberInput, Stack } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { Redrive } from '../api/redrive-types.ts'

export interface RateDialogProps {
  /** null: closed. */
  readonly redrive: Redrive | null
  readonly close: () => void
  readonly set: (rate: number | null) => void
}

const MOST_PER_SECOND = 1_000_000

export function RateDialog({ redrive, close, set }: RateDialogProps) {
  return (
    <Modal
      opened={redrive !== null}
      onClose={close}
      title="Change the rate"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {redrive !== null && <Field redrive={redrive} close={close} set={set} />}
    </Modal>
  )
}

function Field({ redrive, close, set }: RateDialogProps & { readonly redrive: Redrive }) {
  const [typed, setTyped] = useState<number | string>(redrive.rate ?? '')
  const rate = typed === '' ? null : Number(typed)
  const isWrong = rate !== null && !(rate > 0 && rate <= MOST_PER_SECOND)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (isWrong) return
    close()
    set(rate)
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <NumberInput
          data-autofocus
          label="Rate per destination"
          description="Letters per second. Empty: no limit."
          allowNegative={false}
          clampBehavior="none"
          hideControls
          value={typed}
          error={isWrong ? 'More than 0, and at most 1,000,000. To halt it, pause it.' : undefined}
          onChange={setTyped}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit">Set the rate</Button>
        </Group>
      </Stack>
    </form>
  )
}
