"""Operations on objects: apply, adopt, finalize, write status, judge readiness."""
