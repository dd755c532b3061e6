/** Asks why a letter is discarded: the server keeps the reason with it. */
import { Button, Group, Modal, Stack, Textarea } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import type { LetterItem } from '../api/types.ts'
import { useLetterActs } from './use-letter-acts.ts'

export interface DiscardDialogProps {
  /** null: closed. */
  readonly letter: LetterItem | null
  readonly close: () => void
}

export function DiscardDialog({ letter, close }: DiscardDialogProps) {
  return (
    <Modal
      opened={letter !== null}
      onClose={close}
      title={letter === null ? '' : `Discard ${letter.instanceId}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {letter !== null && <Reason letter={letter} close={close} />}
    </Modal>
  )
}

function Reason({ letter, close }: { readonly letter: LetterItem; readonly close: () => void }) {
  const acts = useLetterActs()
  const [notes, setNotes] = useState('')
  const [isMissing, setMissing] = useState(false)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (notes.trim() === '') return setMissing(true)
    close()
    void acts.discard(letter, notes)
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <Textarea
          data-autofocus
          label="Why"
          description="The letter ends without being sent back. You can undo this for ten seconds, and restore it later."
          autosize
          minRows={2}
          maxLength={4_000}
          value={notes}
          error={isMissing && notes.trim() === '' ? 'The reason is kept with the letter.' : undefined}
          onChange={(event) => setNotes(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && !event.shiftKey) submit(event)
          }}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button type="submit" color="red">
            Discard
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
