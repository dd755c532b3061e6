/** Asks before a redrive is ended, and why: it cannot be taken up again. */
import { Button, Group, Modal, Stack, Text, Textarea } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { Redrive } from '../api/redrive-types.ts'
import { grouped } from '../time/format.ts'
import { titleOf } from './redrive-words.ts'

export interface CancelDialogProps {
  /** null: closed. */
  readonly redrive: Redrive | null
  readonly close: () => void
  readonly cancel: (reason: string) => void
}

export function CancelDialog({ redrive, close, cancel }: CancelDialogProps) {
  return (
    <Modal
      opened={redrive !== null}
      onClose={close}
      title={redrive === null ? '' : `Cancel: ${titleOf(redrive)}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {redrive !== null && <Question redrive={redrive} close={close} cancel={cancel} />}
    </Modal>
  )
}

function Question({ redrive, close, cancel }: CancelDialogProps & { readonly redrive: Redrive }) {
  const [reason, setReason] = useState('')
  const { remaining } = redrive.counts
  const submit = (event: FormEvent) => {
    event.preventDefault()
    close()
    cancel(reason)
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text size="sm">
          {remaining === 1
            ? 'The 1 letter that is left stays as it is'
            : `The ${grouped(remaining)} letters that are left stay as they are`}
          ; what was done stays done. It cannot be resumed: what is left can be planned again.
        </Text>
        <Textarea
          data-autofocus
          label="Reason"
          description="Optional; shown with the redrive."
          autosize
          minRows={1}
          maxLength={4_000}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Keep it running
          </Button>
          <Button type="submit" color="red">
            Cancel the redrive
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
